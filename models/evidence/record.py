"""Record evidence: a value beyond all that was seen, by more than a little."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from models.arrays import Array, Columns, Rows, clamp


@dataclass(frozen=True)
class Range:
    """The running minimum and maximum of n series; both draw in slowly, so that a forgotten outlier loses its say.

    Args:
        low: Running minimum, shape (n,).
        high: Running maximum, shape (n,).
    """

    low: Array
    high: Array


@dataclass(frozen=True)
class Record:
    """Evidence of a new record.

    Of n exchangeable values, the next is a new high or low with the chance 2 / (n + 1). If the tail is exponential the
    range is about ln n of its scales, so that a record that exceeds the range R by e has the chance 2 / n · n^(-e / R).

    Args:
        tolerance: Records that exceed the range by less than this share of it count the less, in proportion.
        most: Excess counts at most this many ranges.
        leak: Share by which both ends draw in towards the level a step.

    Source: B. C. Arnold, N. Balakrishnan, H. N. Nagaraja, Records (1998), chapter 2.

    >>> record, seen = Record(0.08, 3.0, 0.0), np.array([1000.0])
    >>> lived = Range(np.array([0.0]), np.array([10.0]))
    >>> record.evidence(lived, np.array([10.4]), seen, np.array([1e-6])).round(3)  # half of ln 500 + 0.04 ln 1000
    array([3.245])
    >>> record.evidence(lived, np.array([15.0]), seen, np.array([1e-6])).round(3)  # ln 500 + 0.5 ln 1000
    array([9.668])
    """

    tolerance: float
    most: float
    leak: float

    def new_state(self, n: int) -> Columns:
        """The columns for n series of which nothing is known."""
        return {"low": np.zeros(n), "high": np.zeros(n)}

    def read(self, state: Rows, value: Array, seen: Array) -> Range:
        """The range so far; of a new series the value itself."""
        fresh = seen <= 0
        return Range(np.where(fresh, value, state["low"]), np.where(fresh, value, state["high"]))

    def evidence(self, lived: Range, value: Array, seen: Array, resolution: Array) -> Array:
        """-ln of the chance of such a record, or the part of it that counts; 0 if it is none."""
        width = np.maximum(lived.high - lived.low, resolution)
        excess = np.maximum(value - lived.high, lived.low - value) / width
        logs = np.log(np.maximum(seen, 2.0))
        size = logs - np.log(2.0) + np.minimum(excess, self.most) * logs
        counts = clamp(excess / self.tolerance, 0.0, 1.0)
        return np.where(excess > 0, np.maximum(size, 0.0) * counts, 0.0)

    def learn(self, lived: Range, value: Array, level: Array, resolution: Array) -> Range:
        """The range after the value: drawn in a little, then stretched towards it, to twice its width at the most.

        A range that has no width yet is stretched half way.
        """
        low = lived.low + self.leak * np.maximum(level - lived.low, 0.0)
        high = lived.high - self.leak * np.maximum(lived.high - level, 0.0)
        width = high - low
        down, up = np.maximum(low - value, 0.0), np.maximum(value - high, 0.0)
        none = width <= resolution
        most_down, most_up = np.where(none, 0.5 * down, width), np.where(none, 0.5 * up, width)
        return Range(low - np.minimum(down, most_down), high + np.minimum(up, most_up))
