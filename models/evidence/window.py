"""Window evidence: have the last thirty or so values, none of them rare alone, been surprising together?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from models.arrays import Array, Columns, Rows
from models.calibration import TailCalibration


@dataclass(frozen=True)
class WindowMean:
    """Exponentially weighted mean of clipped point evidence.

    Under a right model point evidence is Exp(1), so that the mean has mean 1 and standard deviation √(α / (2 - α)).

    Args:
        pace: Weight α of the newest point.
        clip: Evidence of one point counts at most this, in nats.

    >>> WindowMean(0.03, 5.0).statistic(np.array([1.0]), np.array([50.0]))
    array([1.12])
    """

    pace: float
    clip: float

    def new_state(self, n: int) -> Columns:
        """The column for n series of which nothing is known."""
        return {"mean": np.ones(n)}

    def statistic(self, mean: Array, point: Array) -> Array:
        """The mean after one more point of evidence each."""
        return mean + self.pace * (np.minimum(point, self.clip) - mean)

    def read(self, state: Rows) -> Array:
        """The mean so far."""
        return state["mean"]


def window_calibration(pace: float, forget: float) -> TailCalibration:
    """Calibration of the window mean; before any history 98 % of it lie below 1 + 2.2 standard deviations."""
    deviation = float(np.sqrt(pace / (2 - pace)))
    return TailCalibration(edge=1 + 2.2 * deviation, scale=0.5 * deviation, forget=forget)
