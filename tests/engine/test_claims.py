"""The real code of a driver's claim against a broker in memory that delays commits and forgets offsets.

The broker has transactions with epochs and stable offsets, as Kafka has (KIP-98, KIP-447); `test_shard_output` runs the
same code on a real Kafka.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from engine.kafka import exactly_once, shard_output
from engine.kafka.exactly_once import ledger_group
from engine.kafka.shard_output import Claim, Place
from engine.runtime.messages import Outgoing
from engine.runtime.shard import STATS
from engine.spec.errors import NewnormalError

PLACE = Place("kafka:9092", "job", "ledger")


class Broker:
    """What the broker holds: messages, offsets of groups, epochs of transactional ids; and what happens meanwhile."""

    def __init__(self) -> None:
        self.log: list[str] = []
        self.offsets: dict[str, int] = {}
        self.epochs: dict[str, int] = defaultdict(int)
        self.meanwhile: list[Callable[[], Any]] = []

    def producer(self, options: dict[str, Any]) -> Any:
        return Producer(self, options["transactional.id"])

    def consumer(self, options: dict[str, Any]) -> Any:
        return Consumer(self, options["group.id"])

    def ledgers(self, *_: Any) -> Any:
        return self

    def entries(self, job: str) -> dict[tuple[str, int | None], int]:
        """What the groups say now; then something happens at other processes."""
        prefix, entries = ledger_group(job), {}
        for name, offset in self.offsets.items():
            of, _, shard = name.removeprefix(prefix).partition(".")
            entries[of, int(shard) if shard else None] = offset - 1
        while self.meanwhile:
            self.meanwhile.pop(0)()
        return entries


class Producer:
    """A transactional producer."""

    def __init__(self, broker: Broker, transactional: str) -> None:
        self.broker, self.id = broker, transactional

    def init_transactions(self, seconds: float) -> None:
        self.broker.epochs[self.id] += 1
        self.epoch = self.broker.epochs[self.id]

    def begin_transaction(self) -> None:
        self.messages: list[str] = []
        self.sent: dict[str, int] = {}

    def produce(self, topic: str, value: bytes, key: bytes | None, partition: int) -> None:
        self.messages.append(value.decode())

    def __len__(self) -> int:
        return 0

    def flush(self, seconds: float) -> int:
        return 0

    def send_offsets_to_transaction(self, offsets: Any, group: str, seconds: float) -> None:
        self._alive()
        self.sent[group] = offsets[0].offset

    def commit_transaction(self, seconds: float) -> None:
        self._alive()
        self.broker.log += self.messages
        self.broker.offsets |= self.sent

    def abort_transaction(self, seconds: float) -> None:
        self.messages = []

    def _alive(self) -> None:
        if self.epoch != self.broker.epochs[self.id]:
            raise KafkaException(KafkaError(KafkaError._FENCED))


class Consumer:
    """A consumer that is only asked for its group's offset."""

    def __init__(self, broker: Broker, group: str) -> None:
        self.broker, self.group = broker, group

    def committed(self, slots: Any, timeout: float) -> Any:
        slots[0].offset = self.broker.offsets.get(self.group, -1001)
        return slots

    def consumer_group_metadata(self) -> str:
        return self.group


@pytest.fixture
def broker(monkeypatch: pytest.MonkeyPatch) -> Iterator[Broker]:
    in_memory = Broker()
    monkeypatch.setattr(exactly_once, "Producer", in_memory.producer)
    monkeypatch.setattr(exactly_once, "Consumer", in_memory.consumer)
    monkeypatch.setattr(shard_output, "Ledgers", in_memory.ledgers)
    shard_output._kept.clear()
    yield in_memory
    shard_output._kept.clear()


def claim(shards: int) -> Claim:
    return shard_output.claim(PLACE, "c", shards, threading.Event())


def output(batch: int, *shards: int) -> list[Outgoing]:
    messages = []
    for shard in shards:
        told = f"{batch}/{shard}".encode()
        messages += [Outgoing.of("out", shard, [told]), Outgoing.of(STATS, shard, [b"stats"])]
    return messages


def task(driver: Claim, batch: int, shard: int, anew: bool = False) -> bool:
    if anew:
        shard_output._kept.clear()
    return shard_output.write(PLACE, driver.assignment(batch), shard, output(batch, shard)[:1])


def write_all(driver: Claim, batch: int, writer: Any = None) -> None:
    (writer or PLACE.writer("c")).write(batch, driver.missing(batch, output(batch, 0, 1)))


def shown(broker: Broker) -> list[str]:
    return sorted(told for told in broker.log if told != "stats")


def test_what_a_task_writes_while_a_driver_takes_over_is_written_once(broker: Broker) -> None:
    """The boundary: the commit comes after the ledgers have been read and before the shard is fenced."""
    old = claim(2)
    for batch, shard in ((0, 0), (0, 1), (1, 0)):
        task(old, batch, shard)
    broker.meanwhile.append(lambda: task(old, 1, 1))
    new = claim(0)
    write_all(new, 1)
    assert shown(broker) == ["0/0", "0/1", "1/0", "1/1"]


def test_what_a_driver_writes_while_its_successor_hands_over_to_shards_is_written_once(broker: Broker) -> None:
    old, writer = claim(0), PLACE.writer("c")
    write_all(old, 0, writer)
    broker.meanwhile.append(lambda: write_all(old, 1, writer))
    new = claim(2)
    assert not task(new, 1, 0, anew=True)
    assert not task(new, 1, 1, anew=True)
    assert task(new, 2, 0) and task(new, 2, 1)
    assert shown(broker) == ["0/0", "0/1", "1/0", "1/1", "2/0", "2/1"]


def test_a_driver_that_was_replaced_writes_nothing_more_before_its_successor_does(broker: Broker) -> None:
    old, writer = claim(0), PLACE.writer("c")
    write_all(old, 0, writer)
    claim(2)
    with pytest.raises(NewnormalError, match="JOB_FENCED"):
        write_all(old, 1, writer)
    assert shown(broker) == ["0/0", "0/1"]


def test_a_driver_is_fenced_by_one_whose_clock_was_set_back_after_kafka_has_forgotten_all_generations(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The boundary: the new generation is smaller than the old one."""
    old = claim(2)
    write_all(old, 0)
    del broker.offsets[ledger_group("job", "generation")]
    monkeypatch.setattr("engine.kafka.shard_output.time.time_ns", lambda: 1_000_000_000_000_000_000)
    new = claim(2)
    assert new.generation < old.generation
    with pytest.raises(NewnormalError, match="JOB_FENCED"):
        task(old, 1, 0, anew=True)
    write_all(new, 1)
    assert shown(broker) == ["0/0", "0/1", "1/0", "1/1"]


def test_a_driver_is_fenced_by_one_that_begins_after_kafka_has_forgotten_all_generations(broker: Broker) -> None:
    """The boundary: offsets of a group without members expire after a week; a driver may run for months."""
    for _ in range(4):
        old = claim(2)
    task(old, 0, 0)
    del broker.offsets[ledger_group("job", "generation")]
    new = claim(2)
    assert new.generation > old.generation
    with pytest.raises(NewnormalError, match="JOB_FENCED"):
        task(old, 1, 0)
    assert shown(broker) == ["0/0"]
