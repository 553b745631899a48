"""What a shard writes: Kafka messages, those of one partition together as columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa


@dataclass(frozen=True)
class Message:
    """One Kafka message to write."""

    topic: str
    partition: int
    key: bytes
    value: bytes


@dataclass(frozen=True)
class Outgoing:
    """Messages to write to one partition, in order; no Python object is made of each until Kafka takes them.

    Args:
        topic: Where to.
        partition: Of the topic.
        keys: Binary; empty: none.
        values: Binary, as many.

    >>> list(Outgoing.of("a", 0, [b"1"]))
    [Message(topic='a', partition=0, key=b'', value=b'1')]
    """

    topic: str
    partition: int
    keys: pa.Array
    values: pa.Array

    @classmethod
    def of(cls, topic: str, partition: int, values: Sequence[bytes]) -> Outgoing:
        """Messages without keys."""
        return cls(topic, partition, pa.array([b""] * len(values), pa.binary()), pa.array(values, pa.binary()))

    def __iter__(self) -> Iterator[Message]:
        for key, value in zip(self.keys.to_pylist(), self.values.to_pylist(), strict=True):
            yield Message(self.topic, self.partition, key, value)
