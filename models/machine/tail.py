"""How rare a standardised residual is, when it is not known how heavy its tail is."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from models.kernels import kernel
from models.numbers.arrays import Array, Columns


@dataclass(frozen=True)
class PowerTail:
    """Residuals u with P(|u| > x) = (1 + x²)^-α: ln(1 + u²) is exponential, of an unknown rate α with a gamma prior.

    The predictive tail is Lomax in ln(1 + u²). The power α is large for a metric that hardly ever leaves what is
    expected of it, and small for one with bursts: each is judged by its own tail.

    Args:
        scale: Mean of ln(1 + u²) before any history.
        strength: Windows that it is worth.
        forget: Share of the history forgotten per window; in the beginning more, so that first mistakes are outgrown.
        most: Of a residual so many times rarer than the mean only that much is learned.

    Sources: power tails from logarithms: B. Hill, A simple general approach to inference about the tail of a
    distribution, Annals of Statistics 3 (1975); Lomax as the gamma mixture of exponentials: K. Lomax, JASA 49 (1954).

    >>> round(power_evidence(20.0, 20.0 * 0.3, 3.0), 2)  # before any history: 20 ln(1 + ln(10) / 6)
    6.5
    """

    scale: float
    strength: float
    forget: float
    most: float = 20.0

    def new_state(self, n: int, width: int) -> Columns:
        """The columns for the metrics of n machines."""
        return {
            "shape": np.full((n, width), self.strength),
            "rate": np.full((n, width), self.strength * self.scale),
        }


@kernel
def power_evidence(shape: float, rate: float, residual: float) -> float:
    """-ln of the chance of a residual at least so far off, at least 0.

    Args:
        shape: Of the tail of the metric.
        rate: Of the same.
        residual: In standard deviations.
    """
    return shape * math.log1p(math.log1p(residual * residual) / rate)


@kernel
def learn_power(tail: PowerTail, shapes: Array, rates: Array, metric: int, residual: float, weight: float) -> None:
    """Adds the residual of a metric to the history.

    Args:
        tail: The constants.
        shapes: Of the metrics of the machine, shape (w,); changed.
        rates: Of the same, shape (w,); changed.
        metric: The metric's column.
        residual: In standard deviations.
        weight: What the window counts, in [0, 1].
    """
    shape, rate = shapes[metric], rates[metric]
    bent = min(math.log1p(residual * residual), tail.most * rate / shape)
    forget = max(tail.forget, 0.5 / shape)
    shapes[metric] = shape + weight * (1 + forget * (tail.strength - shape))
    rates[metric] = rate + weight * (bent + forget * (tail.strength * tail.scale - rate))
