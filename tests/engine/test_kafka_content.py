"""What a topic holds now is read to an end, whatever its writers are doing."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable

import pytest
from confluent_kafka import Producer

from deploy.embedded.endpoints import Endpoints
from engine.kafka.admin import ensure_topics
from engine.kafka.content import content, values
from engine.spec.errors import NewnormalError

pytestmark = pytest.mark.servers


@pytest.fixture
def topic(endpoints: Endpoints) -> str:
    name = f"content-{time.time_ns()}"
    ensure_topics(endpoints.bootstrap, {name: {}}, partitions=2)
    return name


def transaction(endpoints: Endpoints, topic: str, texts: list[bytes], end: Callable[[Producer], None]) -> Producer:
    producer = Producer({"bootstrap.servers": endpoints.bootstrap, "transactional.id": f"{topic}-{time.time_ns()}"})
    producer.init_transactions(30)
    producer.begin_transaction()
    for text in texts:
        producer.produce(topic, text, partition=0)
    producer.flush(30)
    end(producer)
    return producer


READS = """
import sys
from pathlib import Path
from engine.kafka.content import between
read = [(each.topic(), each.offset(), len(each.value())) for each in between(sys.argv[1], {(sys.argv[2], 0): (2, 25)})]
assert read == [(sys.argv[2], n, 12_000_000) for n in range(2, 25)], read
status = Path("/proc/self/status").read_text("ascii").splitlines()
print(next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) // 1000)
"""


def test_a_part_of_the_log_is_read_without_having_it_all_in_memory(endpoints: Endpoints, topic: str) -> None:
    """The process that runs the pipeline reads parts of what agents send: 25 messages here are 30 kB and 300 MB."""
    wide = {"compression.type": "zstd", "message.max.bytes": 20_000_000, "batch.size": 13_000_000, "linger.ms": 50}
    ensure_topics(endpoints.bootstrap, {f"{topic}-wide": {"max.message.bytes": "16000000"}}, partitions=1)
    producer = Producer({"bootstrap.servers": endpoints.bootstrap, **wide})
    for _ in range(25):
        producer.produce(f"{topic}-wide", b"x" * 12_000_000)
        producer.poll(0)
    assert not producer.flush(60)
    command = [sys.executable, "-c", READS, endpoints.bootstrap, f"{topic}-wide"]
    peak = int(subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout)
    assert peak < 200, "megabytes; all in memory would be 350"


def test_an_empty_topic_has_no_content(endpoints: Endpoints, topic: str) -> None:
    assert values(endpoints.bootstrap, topic) == []


def test_committed_messages_are_read_and_aborted_ones_are_not(endpoints: Endpoints, topic: str) -> None:
    transaction(endpoints, topic, [b"1", b"2"], lambda p: p.commit_transaction(30))
    transaction(endpoints, topic, [b"3"], lambda p: p.abort_transaction(30))
    assert values(endpoints.bootstrap, topic) == [b"1", b"2"]


def test_an_open_transaction_does_not_keep_the_reading_from_ending(endpoints: Endpoints, topic: str) -> None:
    transaction(endpoints, topic, [b"1"], lambda p: p.commit_transaction(30))
    writer = transaction(endpoints, topic, [b"2"], lambda p: None)
    plain = Producer({"bootstrap.servers": endpoints.bootstrap})
    plain.produce(topic, b"other", partition=1)
    plain.flush(30)
    began = time.monotonic()
    assert sorted(values(endpoints.bootstrap, topic)) == [b"1", b"other"]
    assert time.monotonic() - began < 25
    writer.commit_transaction(30)
    assert sorted(values(endpoints.bootstrap, topic)) == [b"1", b"2", b"other"]


def test_what_is_written_meanwhile_is_not_read(endpoints: Endpoints, topic: str) -> None:
    producer = Producer({"bootstrap.servers": endpoints.bootstrap})
    for number in range(3):
        producer.produce(topic, str(number).encode(), partition=0)
    producer.flush(30)
    read = []
    for message in content(endpoints.bootstrap, topic):
        read.append(message.value())
        producer.produce(topic, b"later", partition=0)
        producer.flush(30)
    assert read == [b"0", b"1", b"2"]


def test_a_topic_that_is_not_there_is_said_to_be_so(endpoints: Endpoints) -> None:
    with pytest.raises(NewnormalError, match="TOPIC_UNKNOWN"):
        values(endpoints.bootstrap, f"nowhere-{time.time_ns()}")


def test_the_end_behind_the_mark_of_a_transaction_is_told_at_once(endpoints: Endpoints, topic: str) -> None:
    """The last offset is that of the mark. A broker keeps an answer back for half a second if not asked otherwise."""
    transaction(endpoints, topic, [b"1"], lambda p: p.commit_transaction(30))
    took = []
    for _ in range(5):
        began = time.monotonic()
        assert values(endpoints.bootstrap, topic) == [b"1"]
        took.append(time.monotonic() - began)
    assert min(took) < 0.45
