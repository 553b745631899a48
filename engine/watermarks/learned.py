"""A bound of out-of-orderness that is learned from the lateness of records."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from engine.spec.duration import NEVER, DurationField
from engine.spec.errors import NewnormalError
from engine.watermarks.clock import Observed, PartitionClock
from engine.watermarks.strategy import WatermarkStrategy

_STEPS = 256
_BLOCKS = 8


@dataclass(frozen=True)
class LearnedLateness(WatermarkStrategy):
    """A partition's watermark trails its greatest event time by a percentile of the lateness observed in it.

    The lateness of a record is how far it lies behind the greatest event time before it in the log of its partition.
    All records of the last ``history`` of event time count. They are counted in blocks of an eighth of ``history``: the
    current block and the eight before it. So what is learned depends on the log alone, not on how it is divided into
    messages and micro-batches. With fewer than ``enough`` records the bound is ``most``. Event times and lateness are
    counted in whole units of a 256th of ``most``; for a lateness above 0 the bound covers the whole unit.

    Args:
        percentile: Share of the records that shall not be late.
        history: How far back in event time records count.
        least: Smallest bound.
        most: Largest bound. A 256th of it is the resolution, to which the bound is rounded up.
        enough: Number of records from which on the bound is learned.
        idle_after: See `WatermarkStrategy`.
        expected: See `WatermarkStrategy`.

    Raises:
        NewnormalError: ``WATERMARK_INVALID``.
    """

    percentile: float = 0.999
    history: DurationField = DurationField("history", "10m")
    least: DurationField = DurationField("least", "0s")
    most: DurationField = DurationField("most", "1m")
    enough: int = 1000
    idle_after: DurationField = DurationField("idle_after", "10s")
    expected: tuple[tuple[str, int], ...] = ()

    def __post_init__(self) -> None:
        ordered = 0 <= self.least <= self.most and self.most > 0
        if not (0 < self.percentile <= 1 and ordered and self.history > 0):
            accepted = "0 < percentile <= 1, 0s <= least <= most, history above 0s"
            raise NewnormalError("WATERMARK_INVALID", repr(self), "LearnedLateness", accepted)

    @property
    def resolution(self) -> int:
        """The unit in which times are counted, milliseconds."""
        return max(1, self.most // _STEPS)

    def observed(self, times: npt.NDArray[np.int64]) -> Observed:
        if not len(times):
            return ()
        units = times // self.resolution
        newest = np.maximum.accumulate(units)
        late = np.minimum(newest - units, _STEPS)
        pairs, counts = np.unique(np.stack([newest, late]), axis=1, return_counts=True)
        return tuple((int(n), int(b), int(c)) for n, b, c in zip(*pairs, counts, strict=True))

    def learn(self, clock: PartitionClock, observed: Observed) -> None:
        """Adds observed lateness to the blocks, corrected by the greatest event time of earlier messages."""
        before = clock.max_time // self.resolution if clock.max_time > NEVER else None
        block_length = max(1, self.history // _BLOCKS // self.resolution)
        for newest, behind, count in observed:
            true = newest if before is None else max(newest, before)
            late = str(min(_STEPS, behind + true - newest))
            block = clock.lateness.setdefault(str(true // block_length), {})
            block[late] = block.get(late, 0) + count
        if clock.lateness:
            oldest = max(map(int, clock.lateness)) - _BLOCKS
            clock.lateness = {name: block for name, block in clock.lateness.items() if int(name) >= oldest}

    def lag(self, clock: PartitionClock) -> int:
        counts = np.zeros(_STEPS + 1, np.int64)
        for block in clock.lateness.values():
            for late, count in block.items():
                counts[int(late)] += count
        least, most = self.least, self.most
        if counts.sum() < self.enough:
            return most
        at = int(np.searchsorted(np.cumsum(counts), self.percentile * counts.sum()))
        return min(most, max(least, at * self.resolution + (self.resolution - 1 if at else 0)))
