"""A bound of out-of-orderness that is learned from how late records were."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from engine.spec.duration import NEVER, DurationField
from engine.spec.errors import NewnormalError
from engine.watermarks.clock import PartitionClock
from engine.watermarks.marker import Observed
from engine.watermarks.strategy import WatermarkStrategy

_STEPS = 256
_BLOCKS = 8


@dataclass(frozen=True)
class LearnedLateness(WatermarkStrategy):
    """A partition's watermark trails its greatest event time by a percentile of the lateness observed in it.

    A record is late by how far it lies behind the greatest event time ahead of it in the log of its partition. All
    records of the last ``history`` of event time count: they are remembered in blocks of an eighth of it, and the block
    at hand and the eight before it count. So what is learned depends on the log alone, not on how it is cut into
    messages and micro-batches. While fewer than ``enough`` records are remembered, ``most`` is the bound. Event times
    and lateness are counted in whole units, a 256th of ``most``; for a lateness above 0 the bound covers that unit.

    Args:
        percentile: Share of the records that shall not be late.
        history: How far back records are remembered, event time.
        least: The bound is never smaller.
        most: Nor larger; a 256th of it is the resolution, which the bound is rounded up to.
        enough: Records below which nothing is known.
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
        """Milliseconds in which times are counted."""
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
        """Adds to the blocks: by the newest time, that of the messages before included, how many were how late."""
        known = clock.max_time // self.resolution if clock.max_time > NEVER else None
        block_length = max(1, self.history // _BLOCKS // self.resolution)
        for newest, behind, count in observed:
            true = newest if known is None else max(newest, known)
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
