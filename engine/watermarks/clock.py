"""What is known of the event time of one source partition: what a marker reports, and the clock that it moves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from engine.spec.duration import NEVER

Observed = Sequence[tuple[int, int, int]]
"""Lateness of some records as a map task sees it, in rows of three: the greatest event time up to a record, how far the
record lies behind it, and the number of such records. The first two are in units of the strategy's resolution."""


@dataclass
class PartitionClock:
    """The event time and arrival times known of one source partition, from its markers so far.

    Attributes:
        max_time: Greatest event time of its records; `NEVER` without records.
        writer_watermark: Greatest watermark of its writer; ``None`` if its log carries none.
        last: Greatest arrival time of its messages, heartbeats included.
        last_record: Greatest arrival time of its messages that are no heartbeats; before the first such message, the
            arrival time of the first heartbeat.
        lateness: For `LearnedLateness`: for each block of event time, the number of records by their lateness.
    """

    max_time: int = NEVER
    writer_watermark: int | None = None
    last: int = NEVER
    last_record: int = NEVER
    lateness: dict[str, dict[str, int]] = field(default_factory=dict)

    def take(self, marker: Marker) -> None:
        """Updates the clock from a marker."""
        self.max_time = max(self.max_time, marker.max_time)
        if marker.writer_watermark is not None:
            before = NEVER if self.writer_watermark is None else self.writer_watermark
            self.writer_watermark = max(before, marker.writer_watermark)
        self.last = max(self.last, marker.last)
        self.last_record = max(marker.first if self.last_record == NEVER else self.last_record, marker.last_record)


def is_idle(clock: PartitionClock, idle_after: int) -> bool:
    """Whether a partition has had heartbeats for a while without a record, by the arrival times in its own log.

    Args:
        clock: The clock of the partition.
        idle_after: Milliseconds of heartbeats without a record after which a partition is idle.

    >>> is_idle(PartitionClock(last=20_000, last_record=10_000), 10_000)
    True
    """
    return clock.last - clock.last_record >= idle_after


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
