"""Idle partitions: the watermark does not wait for a source partition that has heartbeats but no records."""

from __future__ import annotations

from engine.watermarks.clock import PartitionClock


def is_idle(clock: PartitionClock, idle_after: int) -> bool:
    """Whether a partition has had heartbeats for a while without a record, by the arrival times in its own log.

    Args:
        clock: The clock of the partition.
        idle_after: Milliseconds of heartbeats without a record after which a partition is idle.

    >>> is_idle(PartitionClock(last=20_000, last_record=10_000), 10_000)
    True
    """
    return clock.last - clock.last_record >= idle_after
