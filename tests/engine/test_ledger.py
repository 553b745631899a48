"""Exactly once, step by step: what the writer asks of Kafka in which order, and what it makes of each answer.

Real brokers are killed in tests/chaos and in tests/integration/test_exactly_once.py; but when a commit succeeds and its
answer is lost, or which request comes before which, only a broker that does as it is told can show. It stands where
confluent-kafka's clients begin.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition

from engine.kafka import exactly_once
from engine.kafka.exactly_once import TransactionalWriter
from engine.runtime.messages import Outgoing
from engine.spec.errors import NewnormalError

NONE_YET = -1001
"""What Kafka calls the offset of a group that has committed nothing."""


@dataclass
class Broker:
    """Keeps what was committed; each request is noted, and may fail once before or after it takes effect."""

    offset: int = NONE_YET
    calls: list[str] = field(default_factory=list)
    messages: list[bytes] = field(default_factory=list)
    before: dict[str, KafkaError] = field(default_factory=dict)
    after: dict[str, KafkaError] = field(default_factory=dict)

    def asked(self, request: str, effect: Callable[[], None] = lambda: None) -> None:
        self.calls.append(request)
        if request in self.before:
            raise KafkaException(self.before.pop(request))
        effect()
        if request in self.after:
            raise KafkaException(self.after.pop(request))


class Clients:
    """A producer and a consumer of a `Broker`; what is in an open transaction is lost with them."""

    def __init__(self, broker: Broker, settings: dict[str, Any]) -> None:
        self.broker, self.settings = broker, settings
        self.waiting: list[bytes] = []
        self.pending: int | None = None

    def init_transactions(self, _timeout: float) -> None:
        self.broker.asked("init")

    def committed(self, slots: list[TopicPartition], timeout: float) -> list[TopicPartition]:
        self.broker.asked("read the ledger")
        return [TopicPartition(slots[0].topic, slots[0].partition, self.broker.offset)]

    def begin_transaction(self) -> None:
        self.broker.asked("begin")

    def produce(self, _topic: str, value: bytes, _key: bytes | None, _partition: int) -> None:
        self.broker.asked("produce", lambda: self.waiting.append(value))

    def flush(self, _timeout: float) -> None:
        self.broker.asked("flush")

    def __len__(self) -> int:
        return 0

    def consumer_group_metadata(self) -> None:
        return None

    def send_offsets_to_transaction(self, offsets: list[TopicPartition], _group: None, _timeout: float) -> None:
        def note() -> None:
            self.pending = offsets[0].offset

        self.broker.asked("note the batch", note)

    def commit_transaction(self, _timeout: float) -> None:
        def commit() -> None:
            assert self.pending is not None
            self.broker.offset, self.broker.messages = self.pending, self.broker.messages + self.waiting
            self.waiting = []

        self.broker.asked("commit", commit)

    def abort_transaction(self, _timeout: float) -> None:
        self.broker.asked("abort", self.waiting.clear)


WRITE = ["begin", "produce", "note the batch", "commit"]
CONNECT = ["init", "read the ledger"]


@pytest.fixture
def broker(monkeypatch: pytest.MonkeyPatch) -> Broker:
    broker = Broker()
    for name in ("Producer", "Consumer"):
        monkeypatch.setattr(exactly_once, name, lambda settings: Clients(broker, settings))
    return broker


def batch(*values: bytes) -> list[Outgoing]:
    return [Outgoing.of("out", 0, values)]


def lost(code: int) -> KafkaError:
    return KafkaError(code, "no answer", retriable=True)


def test_the_ledger_is_read_before_a_batch_is_written_and_its_number_is_in_the_transaction(broker: Broker) -> None:
    writer = TransactionalWriter("nowhere", "job")
    assert writer.write(0, batch(b"a"))
    assert broker.calls == [*CONNECT, *WRITE]
    assert (broker.messages, broker.offset) == ([b"a"], 1)
    assert writer.write(1, batch(b"b"))
    assert broker.calls == [*CONNECT, *WRITE, *WRITE], "the connection is kept"
    assert (broker.messages, broker.offset) == ([b"a", b"b"], 2)


@pytest.mark.parametrize(("number", "written"), [(3, False), (4, False), (5, True)])
def test_a_batch_that_was_committed_before_the_restart_is_not_written_again(
    broker: Broker, number: int, written: bool
) -> None:
    broker.offset = 5  # batch 4 was the last one
    assert TransactionalWriter("nowhere", "job").write(number, batch(b"a")) == written
    assert broker.messages == ([b"a"] if written else [])


def test_an_empty_batch_is_noted_too(broker: Broker) -> None:
    assert TransactionalWriter("nowhere", "job").write(7, [])
    assert (broker.messages, broker.offset) == ([], 8)


@pytest.mark.parametrize("request_", ["produce", "note the batch", "commit"])
def test_a_request_without_an_answer_that_had_no_effect_is_made_again_over_new_connections(
    broker: Broker, request_: str
) -> None:
    broker.before[request_] = lost(KafkaError._TIMED_OUT)
    assert TransactionalWriter("nowhere", "job").write(0, batch(b"a"))
    assert broker.calls[-6:] == [*CONNECT, *WRITE]
    assert (broker.messages, broker.offset) == ([b"a"], 1)


def test_a_commit_whose_answer_was_lost_is_found_in_the_ledger_and_the_batch_is_not_written_twice(
    broker: Broker,
) -> None:
    broker.after["commit"] = lost(KafkaError._TIMED_OUT)
    assert TransactionalWriter("nowhere", "job").write(0, batch(b"a")), "it was this call that wrote it"
    assert broker.calls == [*CONNECT, *WRITE, *CONNECT]
    assert broker.messages == [b"a"]


@pytest.mark.parametrize("code", [KafkaError._FENCED, KafkaError.PRODUCER_FENCED, KafkaError.INVALID_PRODUCER_EPOCH])
def test_a_writer_that_another_one_has_replaced_ends_and_writes_nothing(broker: Broker, code: int) -> None:
    broker.before["commit"] = KafkaError(code, "fenced")
    with pytest.raises(NewnormalError, match="JOB_FENCED"):
        TransactionalWriter("nowhere", "job").write(0, batch(b"a"))
    assert broker.calls == [*CONNECT, *WRITE], "it is not tried again"
    assert broker.messages == []


@pytest.mark.parametrize(
    ("code", "raised", "words"),
    [
        (KafkaError.MSG_SIZE_TOO_LARGE, KafkaException, "MSG_SIZE_TOO_LARGE"),
        (KafkaError.TOPIC_AUTHORIZATION_FAILED, NewnormalError, "KAFKA_NOT_ALLOWED"),
    ],
)
def test_what_kafka_refuses_for_good_is_aborted_and_raised(
    broker: Broker, code: int, raised: type[Exception], words: str
) -> None:
    broker.before["produce"] = KafkaError(code, "no")
    with pytest.raises(raised, match=words):
        TransactionalWriter("nowhere", "job").write(0, batch(b"a"))
    assert broker.calls == [*CONNECT, "begin", "produce", "abort"]
    assert (broker.messages, broker.offset) == ([], NONE_YET)


def test_each_job_has_its_own_transactions_and_each_checkpoint_its_own_numbers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    options: list[dict[str, Any]] = []
    for name in ("Producer", "Consumer"):
        monkeypatch.setattr(
            exactly_once, name, lambda settings: options.append(settings) or Clients(Broker(), settings)
        )
    for job, epoch in (("a", "1"), ("a", "2"), ("b", "1")):
        TransactionalWriter("nowhere", job, epoch=epoch).write(0, batch(b"x"))
    writers = [settings["transactional.id"] for settings in options if "transactional.id" in settings]
    groups = [settings["group.id"] for settings in options if "group.id" in settings]
    assert writers[0] == writers[1] != writers[2], "one process at a time writes as a job, whatever its checkpoint"
    assert len(set(groups)) == 3


def test_a_batch_that_spark_repeats_without_a_restart_is_not_written_again(broker: Broker) -> None:
    writer = TransactionalWriter("nowhere", "job")
    assert writer.write(0, batch(b"a"))
    assert not writer.write(0, batch(b"a"))
    assert broker.messages == [b"a"]
