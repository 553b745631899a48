"""The samples of one run, in a topic of its own: some warm a program up, the others appear all at one moment.

These are written in one transaction while the program warms up. Readers of committed messages see them when it is
committed, so that no writing disturbs what is measured, and the beginning is known whatever a program reads ahead.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import polars as pl
from confluent_kafka import Producer

from datagen.kafka_writer import producer_settings
from tests.benchmarks.load import Load, columnar_messages, json_lines
from tests.benchmarks.peers.samples import avro

_TOGETHER = 50_000
_WAITING = 1_000_000
_SECONDS = 600.0
Messages = Iterator[list[dict[str, Any]]]


def _one_by_one(encode: Callable[[pl.DataFrame], Iterable[str | bytes]]) -> Callable[..., Messages]:
    """A message for each sample, keyed by machine."""

    def messages(chunks: Iterable[pl.DataFrame], _: int) -> Messages:
        for chunk in chunks:
            keys = chunk["entity"].to_list()
            yield [{"value": value, "key": key} for value, key in zip(encode(chunk), keys, strict=True)]

    return messages


def _columnar(chunks: Iterable[pl.DataFrame], partitions: int) -> Messages:
    for partition, value in columnar_messages(chunks, Load.time, partitions):
        yield [{"value": value, "partition": partition}]


FORMATS = {"json": _one_by_one(json_lines), "avro": _one_by_one(avro), "columnar": _columnar}


class Feed:
    """Writes the samples of a load.

    Args:
        bootstrap: Address of the broker.
        topic: An empty topic.
        partitions: Its partitions.
        kind: Of `FORMATS`.
        load: The samples.
        warm: How many of them warm up.
    """

    def __init__(self, bootstrap: str, topic: str, partitions: int, kind: str, load: Load, warm: int) -> None:
        own = {"transactional.id": topic, "transaction.timeout.ms": 900_000, "message.max.bytes": 15_000_000}
        queue = {"queue.buffering.max.messages": 2 * _WAITING, "queue.buffering.max.kbytes": 1 << 20}
        self._producer = Producer(producer_settings(bootstrap) | own | queue | {"message.timeout.ms": 800_000})
        self._producer.init_transactions(_SECONDS)
        self._topic, self._partitions, self._messages = topic, partitions, FORMATS[kind]
        self._chunks, self._warm = load.chunks(), warm

    def fill(self) -> None:
        """Writes what warms up, a chunk of 100,000 a second, so that there are many micro-batches; then the others."""
        due = time.monotonic()
        for chunk in self._first():
            self._producer.begin_transaction()
            self._write([chunk])
            self._producer.commit_transaction(_SECONDS)
            due += 1
            time.sleep(max(0.0, due - time.monotonic()))
        self._producer.begin_transaction()
        self._write(self._chunks)
        self._producer.flush()

    def release(self) -> None:
        """Lets all readers see the others."""
        self._producer.commit_transaction(_SECONDS)

    def _first(self) -> Iterator[pl.DataFrame]:
        """At least so many samples, in whole chunks."""
        taken = 0
        while taken < self._warm:
            chunk = next(self._chunks)
            taken += chunk.height
            yield chunk

    def _write(self, chunks: Iterable[pl.DataFrame]) -> None:
        for messages in self._messages(chunks, self._partitions):
            while len(self._producer) > _WAITING:
                self._producer.poll(0.05)
            for first in range(0, len(messages), _TOGETHER):
                self._produce(messages[first : first + _TOGETHER])

    def _produce(self, messages: list[dict[str, Any]]) -> None:
        if "partition" in messages[0]:
            self._producer.produce(self._topic, **messages[0])
        elif self._producer.produce_batch(self._topic, messages) != len(messages):
            raise RuntimeError(f"{self._topic}: the queue of the producer is full")
