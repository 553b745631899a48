"""Window evidence: have the last thirty or so values, none of them rare alone, been surprising together?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from models.evidence.mean import mean_surprise_of
from models.kernels import kernel
from models.numbers.arrays import Columns


@dataclass(frozen=True)
class WindowMean:
    """Exponentially weighted mean of clipped point evidence.

    Under a right model point evidence is Exp(1), so that the mean is about that of (2 - α) / α independent ones.

    Args:
        pace: Weight α of the newest point.
        clip: Evidence of one point counts at most this, in nats.
    """

    pace: float
    clip: float

    def new_state(self, n: int) -> Columns:
        """The column for n series of which nothing is known."""
        return {"mean": np.ones(n, np.float32)}


@kernel
def window_mean(config: WindowMean, before: float, point: float) -> float:
    """The mean after one more point of evidence.

    >>> from models.records import constants
    >>> window_mean(constants(window=WindowMean(0.03, 5.0)).window, 1.0, 50.0)
    1.12
    """
    return before + config.pace * (min(point, config.clip) - before)


@kernel
def window_surprise(config: WindowMean, mean: float) -> float:
    """-ln of the chance of a mean so high, were the points independent; they are not, so calibrate it.

    >>> from models.records import constants
    >>> config = constants(window=WindowMean(0.03, 5.0)).window
    >>> [round(window_surprise(config, mean), 1) for mean in (1.0, 1.5, 4.0)]
    [0.7, 8.6, 106.1]
    """
    return mean_surprise_of(mean, (2 - config.pace) / config.pace)
