"""A Kafka of somebody else takes a record of 29 kB that becomes 950 MB: the job tells of it, and all goes on."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer
from pyspark.sql import SparkSession

from engine import Count, Instant, Record, Stream, Tumbling
from engine.kafka.admin import ensure_topics
from engine.kafka.content import content, values
from engine.spark.run import run
from engine.spec.too_large import MOST_IN_RECORD
from tests.foreign_kafka import foreign_kafka

T0 = 1_766_000_000_000
MB = 1_000_000


class Sample(Record):
    """What the job reads."""

    time: Instant
    name: str
    value: float


JOB = (
    Stream.read_json("samples", Sample, time="time", out_of_orderness="1s")
    .key_by("name")
    .window(Tumbling("10s"))
    .aggregate(n=Count())
    .write("results")
)


@pytest.fixture(scope="module")
def foreign(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A broker with Kafka's own jars, which bounds the compressed batch only."""
    with foreign_kafka(tmp_path_factory.mktemp("kafka")) as address:
        yield address


def sample(second: int, name: str = "a") -> bytes:
    return json.dumps({"time": T0 + second * 1000, "name": name, "value": 1.0}).encode()


def send(bootstrap: str, *messages: bytes) -> list[int]:
    """Sends messages in one batch; returns their offsets."""
    options = {"compression.type": "zstd", "message.max.bytes": 1_000_000_000, "batch.size": 1_000_000_000}
    told = list[int]()
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 1_000, **options})
    for message in messages:
        producer.produce("samples", message, on_delivery=lambda error, at: told.append(-1 if error else at.offset()))
    deadline = time.monotonic() + 120  # not flush(), which does not wait until the batch is whole
    while len(told) < len(messages):
        producer.poll(1)
        assert time.monotonic() < deadline
    assert -1 not in told
    return told


@pytest.mark.slow
@pytest.mark.servers
def test_what_becomes_too_large_is_a_dead_letter_with_its_place_and_all_else_is_counted(
    spark: SparkSession, foreign: str, tmp_path: Path
) -> None:
    """The JVM of Spark has a heap of 1 GB: Kafka's own client ends it at the first of these records."""
    ensure_topics(foreign, {"samples": {"max.message.bytes": "16000000"}}, 1)
    send(foreign, sample(0))
    alone = send(foreign, b"x" * (950 * MB))
    _, within, _ = send(foreign, sample(1), b"x" * (MOST_IN_RECORD + 1), sample(2))
    # 960 MB, each within the bounds: a poll must not hold them all
    legal = [offset for _ in range(4) for offset in send(foreign, *[b"x" * (15 * MB)] * 16)]
    send(foreign, sample(3))

    def done() -> bool:
        nonlocal clock
        clock += 20
        send(foreign, sample(clock, "clock"))
        assert time.monotonic() < deadline
        return any(result["name"] == "a" for result in results())

    def results() -> list[dict[str, object]]:
        return [json.loads(value) for value in values(foreign, "results") if value.startswith(b"{")]

    clock, deadline = 0, time.monotonic() + 240
    assert spark is SparkSession.getActiveSession()
    run(JOB, kafka=foreign, state=tmp_path, partitions=1, until=done)
    counted = [result for result in results() if result["name"] == "a"]
    assert [result["n"] for result in counted] == [4]
    letters = [json.loads(value) for value in values(foreign, JOB.dead.topic)]
    refused = {
        each["kafka.offset"]: each["error.message"] for each in letters if each["error.code"] == "RECORD_TOO_LARGE"
    }
    assert refused.keys() == {*alone, within}
    assert refused[alone[0]].startswith("950,000,0")
    other = {each["kafka.offset"] for each in letters if each["error.code"] != "RECORD_TOO_LARGE"}
    assert other == set(legal)


@pytest.mark.slow
@pytest.mark.servers
def test_a_command_reads_on_behind_what_librdkafka_cannot_decompress(foreign: str) -> None:
    ensure_topics(foreign, {"samples": {"max.message.bytes": "16000000"}}, 1)
    begin = send(foreign, b"begin")[0]
    among = send(foreign, b"1", b"x" * (200 * MB), *[b"%d" % n for n in range(21)])
    end = send(foreign, b"end")[0]
    read = [message.offset() for message in content(foreign, "samples") if begin <= (message.offset() or 0)]
    others = [begin, among[0], *among[2:], end]  # if librdkafka has sent the large one in a batch of its own
    assert read in (others, [begin, end])
