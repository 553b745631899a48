"""A micro-batch has a bound in bytes: large legal messages come a few at a time, and others are not kept waiting."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from pathlib import Path

import pytest
from confluent_kafka import Message, Producer
from pyspark.sql import SparkSession

from deploy.embedded.endpoints import Endpoints
from engine import Count, Instant, Record, Stream, Tumbling
from engine.kafka.admin import ensure_topics
from engine.kafka.content import content, values
from engine.spark.checkpoint_lock import NO_NAMESPACE
from engine.spark.checkpoint_offsets import offsets_of
from engine.spark.query import BatchReport, Runtime
from engine.spark.run import run

T0 = 1_766_000_000_000
MB = 1_000_000
LARGE, SMALL = 20, 3_000


class Sample(Record):
    """What the job reads."""

    time: Instant
    name: str
    value: float


def sample(name: str, second: int, size: int = 0) -> bytes:
    """A sample of so many bytes more than it needs, in a field that nobody knows."""
    return json.dumps({"time": T0 + second * 1000, "name": name, "value": 1.0, "unknown": "x" * size}).encode()


def send(
    bootstrap: str, topic: str, partition: int, messages: list[bytes], *, transaction: bool, headers: int = 0
) -> None:
    """Sends messages, each with a header of so many bytes."""
    options = {"compression.type": "zstd", "message.max.bytes": 20 * MB, "batch.size": 20 * MB, "linger.ms": 100}
    given = {"transactional.id": uuid.uuid4().hex} if transaction else {}
    producer = Producer({"bootstrap.servers": bootstrap, **options, **given})
    if transaction:
        producer.init_transactions()
        producer.begin_transaction()
    for message in messages:
        producer.produce(topic, message, partition=partition, headers=[("h", b"x" * headers)] if headers else [])
        producer.poll(0)
    if transaction:
        producer.commit_transaction()
    assert not producer.flush(60)


def size(message: Message) -> int:
    """Bytes of a message's value and of its headers."""
    return len(message.value() or b"") + sum(len(value) for _, value in message.headers() or ())  # type: ignore[misc, arg-type]


@pytest.mark.spark
@pytest.mark.servers
def test_a_micro_batch_has_no_more_bytes_than_its_bound_and_each_partition_a_share(
    spark: SparkSession, endpoints: Endpoints, tmp_path: Path
) -> None:
    topic = f"large{uuid.uuid4().hex[:8]}"
    job = (
        Stream.read_json(topic, Sample, time="time", out_of_orderness="1s")
        .key_by("name")
        .window(Tumbling("10s"))
        .aggregate(n=Count())
        .write(f"{topic}.results")
    )
    ensure_topics(endpoints.bootstrap, {topic: {"max.message.bytes": "16000000"}}, 2)
    large = [sample("large", second, 8 * MB) for second in range(LARGE // 2)]
    send(endpoints.bootstrap, topic, 0, large, transaction=False)
    with_headers = [sample("large", second) for second in range(LARGE // 2, LARGE)]
    send(endpoints.bootstrap, topic, 0, with_headers, transaction=False, headers=8 * MB)
    # the offsets of the last ones of a transaction are markers, which no reader ever gets
    for _ in range(3):
        send(endpoints.bootstrap, topic, 1, [sample("small", 1)] * (SMALL // 3), transaction=True)
    sizes = {(m.partition(), m.offset()): size(m) for m in content(endpoints.bootstrap, topic)}
    ends, clock = list[Mapping[str, int]](), LARGE

    def planned(report: BatchReport) -> None:
        ends.append(offsets_of(tmp_path / "checkpoints" / NO_NAMESPACE / job.name, report.batch_id)[topic])

    def done() -> bool:
        nonlocal clock
        for partition in (0, 1):
            send(endpoints.bootstrap, topic, partition, [sample("clock", clock := clock + 20)], transaction=False)
        return len(counted()) == LARGE // 10 + 1

    def counted() -> list[tuple[str, int]]:
        results = [json.loads(value) for value in values(endpoints.bootstrap, f"{topic}.results")]
        return sorted((each["name"], each["n"]) for each in results if each["name"] != "clock")

    assert spark is SparkSession.getActiveSession()
    run(job, kafka=endpoints.bootstrap, state=tmp_path, until=done, listener=planned)
    assert counted() == [("large", 10)] * (LARGE // 10) + [("small", SMALL)]
    begun, most = {"0": 0, "1": 0}, 0
    for end in ends:
        read = [bytes_ for (p, offset), bytes_ in sizes.items() if begun[str(p)] <= offset < end[str(p)]]
        most, begun = max(most, sum(read)), dict(end)
    assert 8 * MB < most <= Runtime.max_bytes
    assert ends[0]["1"] >= SMALL, "the small messages are all read with the first large ones"
