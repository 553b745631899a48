"""Reads the last messages of topics."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from confluent_kafka import KafkaError, Message, TopicPartition

from engine.formats.heartbeat import HEARTBEAT
from engine.kafka.content import bounded_reader, bounds

LAST = 200
"""How many of the last messages of a partition are read: with heartbeats alone, those of eight minutes."""
_SECONDS = 20.0


@dataclass(frozen=True)
class Arrived:
    """A message of a partition.

    Attributes:
        offset: Its offset.
        time: When it arrived at Kafka, epoch milliseconds.
        value: Its value.
    """

    offset: int
    time: int
    value: bytes

    @property
    def beats(self) -> bool:
        """True for a heartbeat, which holds no record."""
        return self.value == HEARTBEAT


Tails = Mapping[tuple[str, int], Sequence[Arrived]]
"""The last messages of each partition, by topic and partition; empty for a partition without messages."""


def tails(bootstrap: str, topics: Sequence[str], last: int = LAST) -> Tails:
    """The last messages of each partition of some topics; topics that do not exist are left out.

    Args:
        bootstrap: ``host:port`` of a broker.
        topics: Full names of the topics.
        last: How many messages of each partition.

    Raises:
        KafkaException: The broker does not answer.
        TimeoutError: It answers too slowly.
    """
    reader = bounded_reader(bootstrap, "newnormal.doctor")
    try:
        existing = reader.list_topics(timeout=_SECONDS).topics
        places = [TopicPartition(name, p) for name in topics if name in existing for p in existing[name].partitions]
        messages: dict[tuple[str, int], list[Arrived]] = {(place.topic, place.partition): [] for place in places}
        ends = {}
        for place in places:
            low, high = bounds(reader, place)
            if high > low:
                place.offset = max(low, high - last)
                ends[place.topic, place.partition] = high
        reader.assign([place for place in places if (place.topic, place.partition) in ends])
        deadline = time.monotonic() + _SECONDS
        while ends:
            if time.monotonic() > deadline:
                raise TimeoutError(f"no message within {_SECONDS:g} s")
            for message in reader.consume(1_000, 0.1):
                _take(message, messages, ends)
        return messages
    finally:
        reader.close()


def _take(message: Message, messages: dict[tuple[str, int], list[Arrived]], ends: dict[tuple[str, int], int]) -> None:
    """Keeps a message, and drops its partition from ``ends`` if the partition was read to its end."""
    error, place = message.error(), (message.topic() or "", message.partition() or 0)
    if place not in ends:
        return
    offset = message.offset() or 0
    if error:
        if error.code() == KafkaError._PARTITION_EOF:
            del ends[place]
        return
    if offset < ends[place]:
        messages[place].append(Arrived(offset, message.timestamp()[1], message.value() or b""))
    if offset >= ends[place] - 1:
        del ends[place]
