"""What a map task tells the shards of the clock of one source partition."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

Observed = Sequence[tuple[int, int, int]]
"""Lateness as a map task sees it: newest (greatest event time so far), behind it by, number of such records; the first
two in units of the strategy's resolution."""


@dataclass(frozen=True)
class Marker:
    """What some consecutive messages of one source partition tell of its clock.

    Attributes:
        max_time: Greatest event time of the records; `NEVER` without records.
        writer_watermark: The writer's watermark of the last message; ``None`` where the log carries none.
        first: Arrival time at Kafka of the first message, heartbeats included.
        last: That of the last one.
        spoke: That of the last one that is no heartbeat; `NEVER` without.
        offset: Of the first message.
        observed: For a strategy that learns: how late the records were.
    """

    topic: str
    partition: int
    max_time: int
    writer_watermark: int | None
    first: int
    last: int
    spoke: int
    offset: int = 0
    observed: Observed = ()
