"""The messages that a job has not read yet are those that a user waits for."""

from __future__ import annotations

import time

import pytest
from confluent_kafka import Producer

from deploy.embedded.endpoints import Endpoints
from engine.formats.heartbeat import HEARTBEAT
from engine.kafka import unread as module
from engine.kafka.admin import ensure_topics
from engine.kafka.unread import unread

pytestmark = pytest.mark.servers


@pytest.fixture
def topic(endpoints: Endpoints) -> str:
    """Two transactions, of three messages and of two, in partition 0; then a heartbeat in both partitions."""
    name = f"unread-{time.time_ns()}"
    ensure_topics(endpoints.bootstrap, {name: {}}, partitions=2)
    writer = Producer({"bootstrap.servers": endpoints.bootstrap, "transactional.id": name})
    writer.init_transactions(30)
    for texts in ([b"0", b"1", b"2"], [b"4", b"5"]):
        writer.begin_transaction()
        for text in texts:
            writer.produce(name, text, partition=0)
        writer.commit_transaction(30)
    beats = Producer({"bootstrap.servers": endpoints.bootstrap})
    for partition in (0, 1):
        beats.produce(name, HEARTBEAT, partition=partition)
    assert beats.flush(30) == 0
    return name


@pytest.mark.parametrize(
    ("read", "left"), [({}, 5), ({"0": 1}, 4), ({"0": 3, "1": 0}, 2), ({"0": 6}, 0), ({"0": 8, "1": 1}, 0)]
)
def test_neither_heartbeats_nor_marks_of_transactions_are_counted(
    endpoints: Endpoints, topic: str, read: dict[str, int], left: int
) -> None:
    assert unread(endpoints.bootstrap, [topic], {topic: read}) == left


def test_a_topic_that_does_not_exist_yet_holds_nothing(endpoints: Endpoints, topic: str) -> None:
    assert unread(endpoints.bootstrap, [f"{topic}-none"], {}) == 0
    assert unread(endpoints.bootstrap, [topic, f"{topic}-none"], {}) == 5


def test_a_long_part_of_the_log_is_not_read(endpoints: Endpoints, topic: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "COUNTED", 8)
    assert unread(endpoints.bootstrap, [topic], {}) == 9  # 5 messages, 2 marks, 2 heartbeats
