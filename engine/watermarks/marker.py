"""The report of a map task to the shards about the clock of one source partition."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

Observed = Sequence[tuple[int, int, int]]
"""Lateness of some records as a map task sees it, in rows of three: the greatest event time up to a record, how far the
record lies behind it, and the number of such records. The first two are in units of the strategy's resolution."""


@dataclass(frozen=True)
class Marker:
    """What some consecutive messages of one source partition say about event time and arrival.

    Attributes:
        max_time: Greatest event time of the records; `NEVER` without records.
        writer_watermark: The writer's watermark of the last message; ``None`` where the log carries none.
        first: Arrival time of the first message at Kafka, heartbeats included.
        last: Arrival time of the last message, heartbeats included.
        last_record: Arrival time of the last message that is no heartbeat; `NEVER` without any.
        offset: Offset of the first message.
        observed: How late the records were, for a strategy that learns.
    """

    topic: str
    partition: int
    max_time: int
    writer_watermark: int | None
    first: int
    last: int
    last_record: int
    offset: int = 0
    observed: Observed = ()
