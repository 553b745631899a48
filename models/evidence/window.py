"""Window evidence: have the last thirty or so values, none of them rare alone, been surprising together?"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from models.arrays import Array, Columns, Rows
from models.evidence.mean import mean_surprise


@dataclass(frozen=True)
class WindowMean:
    """Exponentially weighted mean of clipped point evidence.

    Under a right model point evidence is Exp(1), so that the mean is about that of (2 - α) / α independent ones.

    Args:
        pace: Weight α of the newest point.
        clip: Evidence of one point counts at most this, in nats.

    >>> window = WindowMean(0.03, 5.0)
    >>> window.mean(np.array([1.0]), np.array([50.0]))
    array([1.12])
    >>> window.surprise(np.array([1.0, 1.5, 4.0])).round(1)
    array([  0.7,   8.6, 106.1])
    """

    pace: float
    clip: float

    @cached_property
    def _worth(self) -> float:
        return (2 - self.pace) / self.pace

    def new_state(self, n: int) -> Columns:
        """The column for n series of which nothing is known."""
        return {"mean": np.ones(n)}

    def read(self, state: Rows) -> Array:
        """The mean so far."""
        return state["mean"]

    def mean(self, before: Array, point: Array) -> Array:
        """The mean after one more point of evidence each."""
        return before + self.pace * (np.minimum(point, self.clip) - before)

    def surprise(self, mean: Array) -> Array:
        """-ln of the chance of a mean so high, were the points independent; they are not, so calibrate it."""
        return mean_surprise(mean, self._worth)
