"""The input of a job, entry by entry: records, watermarks of writers, heartbeats."""

from __future__ import annotations

from dataclasses import dataclass

from engine.spec.operator import Row


@dataclass(frozen=True)
class Arrival:
    """A record that can be used, and where and when it arrived.

    Attributes:
        arrived: Arrival time at Kafka, epoch milliseconds.
    """

    topic: str
    partition: int
    arrived: int
    record: Row


@dataclass(frozen=True)
class Watermark:
    """The writer's watermark of a partition: after this, the writer sends no record older than it."""

    topic: str
    partition: int
    arrived: int
    watermark: int


@dataclass(frozen=True)
class Heartbeat:
    """A heartbeat of a partition: the partition is alive and has no record."""

    topic: str
    partition: int
    arrived: int


Entry = Arrival | Watermark | Heartbeat
"""One message of one source partition."""
