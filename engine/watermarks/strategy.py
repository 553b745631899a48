"""Watermark strategies: what a job declares of how its input is ordered.

Whatever the strategy, a wrong clock moves the watermark by a bound at most (`engine.spec.time_bounds.TimeBounds`):
records too far ahead of their arrival are dead letters, and a writer's watermark, or a punctuation, is cut there.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from engine.spec.duration import NEVER, DurationField
from engine.watermarks.clock import PartitionClock
from engine.watermarks.marker import Observed


class WatermarkStrategy(ABC):
    """How far event time has come in one source partition, from what its log tells.

    Attributes:
        idle_after: A partition is idle once heartbeats have gone on in it for so long without a record.
        expected: Partitions (topic and number) that are waited for until each has said something, if only a heartbeat:
            at a first start one must not run ahead of another that just was not read yet.
    """

    idle_after: DurationField
    expected: tuple[tuple[str, int], ...]

    @abstractmethod
    def lag(self, clock: PartitionClock) -> int:
        """How many milliseconds the watermark of a partition lies behind its greatest event time."""

    def watermark(self, clock: PartitionClock) -> int:
        """The watermark of a partition; `NEVER` if nothing is known of its event time."""
        if clock.writer_watermark is not None:
            return clock.writer_watermark
        return clock.max_time - self.lag(clock) if clock.max_time > NEVER else NEVER

    def is_active(self, clock: PartitionClock) -> bool:
        """True if the watermark waits for the partition: always if its writer sends watermarks, else if not idle."""
        return clock.writer_watermark is not None or clock.last - clock.last_record < self.idle_after

    def record_watermarks(self, records: pa.Table) -> pa.ChunkedArray | None:
        """The watermark that each record gives, null where it gives none; ``None``: the writers' watermarks count."""
        return None

    def observed(self, times: npt.NDArray[np.int64]) -> Observed:
        """How late some records are, from their event times in the order of the log; empty if nothing is learned."""
        return ()

    def learn(self, clock: PartitionClock, observed: Observed) -> None:  # noqa: B027
        """Adds observed lateness to a clock that has not taken in these records yet."""


@dataclass(frozen=True)
class BoundedOutOfOrderness(WatermarkStrategy):
    """A partition's watermark trails its greatest event time by ``bound``; or is the watermark of its writer.

    The columnar log carries its writer's watermark in each message ("in band", as in Flink); where there is one, it
    holds, and neither ``bound`` nor silence matters. Elsewhere silence is told by the partition's own log: a partition
    is idle, and left out of the minimum, once heartbeats have gone on in it for ``idle_after`` without a record. So a
    backlog that is read late is never taken for silence, and a replay decides the same.

    Args:
        bound: How far records of one partition may be out of order.
        idle_after: By the arrival times of records and heartbeats.
        expected: Partitions that are waited for.
    """

    bound: DurationField = DurationField("bound", "0s")
    idle_after: DurationField = DurationField("idle_after", "10s")
    expected: tuple[tuple[str, int], ...] = ()

    def lag(self, clock: PartitionClock) -> int:
        return int(self.bound)


@dataclass(frozen=True)
class AscendingTimestamps(WatermarkStrategy):
    """The records of each partition come in order of event time: the watermark is the greatest one.

    A record that breaks the order is late, as with any strategy.
    """

    idle_after: DurationField = DurationField("idle_after", "10s")
    expected: tuple[tuple[str, int], ...] = ()

    def lag(self, clock: PartitionClock) -> int:
        return 0


@dataclass(frozen=True)
class Prompt(WatermarkStrategy):
    """Records are sent as soon as what they tell happens: a partition's watermark is its last arrival, less a bound.

    Heartbeats count as arrivals, so that a stream in which little is said, such as that of operators' rules, holds
    nothing up, and yet a replay does not run ahead of it.

    Args:
        bound: How long after its event time a record may arrive.
        idle_after: Means nothing here: no partition is ever idle.
        expected: See `WatermarkStrategy`.
    """

    bound: DurationField = DurationField("bound", "0s")
    idle_after: DurationField = DurationField("idle_after", "10s")
    expected: tuple[tuple[str, int], ...] = ()

    def lag(self, clock: PartitionClock) -> int:
        return int(self.bound)

    def watermark(self, clock: PartitionClock) -> int:
        return clock.last - self.bound if clock.last > NEVER else NEVER

    def is_active(self, clock: PartitionClock) -> bool:
        return True
