"""The messages that a shard writes; those of one partition are kept together as columns."""

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
    value: bytes | None
    """``None``: a tombstone, which deletes the key in a compacted topic."""


@dataclass(frozen=True)
class Outgoing:
    """Messages for one partition, in order. They become Python objects only when they are handed to Kafka.

    Args:
        topic: The topic.
        partition: The partition.
        keys: Binary array of keys; an empty key means no key.
        values: Binary array of values, of the same length; null: see `Message.value`.

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
