"""Watermark strategies: what a job declares about the order of its input. Also decides which partitions are idle.

With every strategy, a wrong clock moves the watermark by a bound at most (`engine.spec.time_bounds.TimeBounds`):
records too far ahead of their arrival are dead letters, and a writer's watermark or a punctuation is capped there.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from engine.spec.duration import NEVER, DurationField
from engine.spec.log_place import NOTHING, Times
from engine.watermarks.clock import Observed, PartitionClock, is_idle


class WatermarkStrategy(ABC):
    """Decides the watermark of one source partition from its clock.

    Attributes:
        idle_after: A partition is idle once heartbeats have gone on in it for so long without a record.
        expected: Partitions (topic and number). The watermark waits until each of them has had a message, if only a
            heartbeat: at a first start no partition must run ahead of another that was not read yet.
    """

    idle_after: DurationField
    expected: tuple[tuple[str, int], ...]

    @abstractmethod
    def lag(self, clock: PartitionClock) -> int:
        """How many milliseconds the watermark of a partition lies behind its greatest event time."""

    def watermark(self, clock: PartitionClock) -> int:
        """The watermark of a partition; `NEVER` if its event time is not known yet."""
        if clock.writer_watermark is not None:
            return clock.writer_watermark
        return clock.max_time - self.lag(clock) if clock.max_time > NEVER else NEVER

    def in_log(self, clock: PartitionClock, writer: Times, newest: Times) -> Times:
        """The watermark of a partition before each of some messages, as far as it follows from them one by one.

        `NEVER` where it does not: by default without watermarks of the writer. The watermark of the shard decides then.

        Args:
            clock: The clock of the partition before the first of the messages.
            writer: For each message the greatest watermark of the writer in the messages before it;
                `engine.spec.log_place.NOTHING` if there is none.
            newest: The same for the greatest event time.
        """
        before = NOTHING if clock.writer_watermark is None else clock.writer_watermark
        writer = np.maximum(writer, before)
        if before > NOTHING or (len(writer) and int(writer.min()) > NOTHING):
            return writer
        return np.where(writer > NOTHING, writer, self._behind(np.maximum(newest, clock.max_time)))

    def _behind(self, newest: Times) -> Times:
        """The watermarks that follow from the greatest event times alone; `NEVER` where none follows."""
        return np.full(len(newest), NEVER, np.int64)

    def is_active(self, clock: PartitionClock) -> bool:
        """True if the watermark waits for the partition: always if its writer sends watermarks, else if not idle."""
        return clock.writer_watermark is not None or not is_idle(clock, self.idle_after)

    def record_watermarks(self, records: pa.Table) -> pa.ChunkedArray | None:
        """The watermark that each record carries, null for none; ``None``: the watermarks of the writers are used."""
        return None

    def observed(self, times: npt.NDArray[np.int64]) -> Observed:
        """The lateness of some records, from event times in log order; empty if the strategy does not learn."""
        return ()

    def learn(self, clock: PartitionClock, observed: Observed) -> None:  # noqa: B027
        """Adds observed lateness to a clock, before the clock takes in these records."""


@dataclass(frozen=True)
class BoundedOutOfOrderness(WatermarkStrategy):
    """The watermark of a partition is its greatest event time less ``bound``, or the watermark of its writer.

    A columnar log carries its writer's watermark in each message ("in band", as in Flink). Where there is one, it is
    used, and ``bound`` and ``idle_after`` have no effect. In other logs a partition is idle, and left out of the
    minimum, once it has had heartbeats for ``idle_after`` without a record. So a backlog that is read late is never
    taken for idleness, and a replay decides the same.

    Args:
        bound: How far records of one partition may be out of order.
        idle_after: See `WatermarkStrategy`; measured by the arrival times of records and heartbeats.
        expected: See `WatermarkStrategy`.
    """

    bound: DurationField = DurationField("bound", "0s")
    idle_after: DurationField = DurationField("idle_after", "10s")
    expected: tuple[tuple[str, int], ...] = ()

    def lag(self, clock: PartitionClock) -> int:
        return int(self.bound)

    def _behind(self, newest: Times) -> Times:
        return np.where(newest > NEVER, newest - int(self.bound), NEVER)


@dataclass(frozen=True)
class AscendingTimestamps(WatermarkStrategy):
    """The records of each partition come in order of event time: the watermark is the greatest one.

    A record that breaks the order is late, as with any strategy.
    """

    idle_after: DurationField = DurationField("idle_after", "10s")
    expected: tuple[tuple[str, int], ...] = ()

    def lag(self, clock: PartitionClock) -> int:
        return 0

    def _behind(self, newest: Times) -> Times:
        return newest


@dataclass(frozen=True)
class Prompt(WatermarkStrategy):
    """The watermark of a partition is the arrival time of its last message less a bound.

    This suits streams whose records are sent as soon as they happen. Heartbeats count as arrivals. So a stream with few
    records, such as rules, does not hold up the job, and yet a replay does not run ahead of it.

    Args:
        bound: How long after its event time a record may arrive.
        idle_after: Has no effect: no partition is ever idle.
        expected: See `WatermarkStrategy`.
    """

    bound: DurationField = DurationField("bound", "0s")
    idle_after: DurationField = DurationField("idle_after", "10s")
    expected: tuple[tuple[str, int], ...] = ()

    def lag(self, clock: PartitionClock) -> int:
        return int(self.bound)

    def watermark(self, clock: PartitionClock) -> int:
        return clock.last - self.bound if clock.last > NEVER else NEVER

    def in_log(self, clock: PartitionClock, writer: Times, newest: Times) -> Times:
        return np.full(len(writer), NEVER, np.int64)

    def is_active(self, clock: PartitionClock) -> bool:
        return True
