"""What predictives of counts have in common: atoms, of which a value's own counts half in a fair tail."""

from __future__ import annotations

import math
from abc import abstractmethod

import numpy as np
from scipy.special import ndtr, ndtri

from models.families.base import Predictive
from models.kernels import kernel
from models.numbers.arrays import Array, clamp

LEAST_LOG = -1e6
"""The logarithm that stands for the probability of what cannot be."""

TURNS = 6
_LN2 = float(np.log(2.0))


class Discrete(Predictive):
    """A distribution on 0, 1, 2, ..., its distribution function continued smoothly between them."""

    @abstractmethod
    def mean(self) -> Array:
        """Expected count, shape (n,)."""

    @abstractmethod
    def variance(self) -> Array:
        """Variance of the count, shape (n,)."""

    def log_mid_tails(self, value: Array) -> tuple[Array, Array]:
        """Logs of P(X < value) + P(X = value) / 2 and of P(X > value) + P(X = value) / 2.

        Source: H. Lancaster, Significance tests in discrete distributions, JASA 56 (1961).
        """
        below, above = self.log_tails(value)
        half = self.log_density(value) - _LN2
        return _less(below, half), _less(above, half)

    def quantile(self, normal: Array) -> Array:
        """See `Predictive`; a root of the continued distribution function, never below 0, so round it outwards.

        Newton steps on the normal scale from a Cornish-Fisher start.
        """
        mean, spread = self.mean(), np.sqrt(self.variance())
        skew = (2 * self.variance() / np.maximum(mean, 1e-12) - 1) / np.maximum(spread, 1e-12)
        value = np.maximum(mean - 0.5 + spread * (normal + np.minimum(skew, 3.0) * (normal * normal - 1) / 6), -0.9)
        for _ in range(TURNS):
            place = ndtri(clamp(self.cdf(value), 1e-300, 1 - 1e-16))
            slope = np.exp(clamp(self.log_density(np.maximum(value, 0.0)) + 0.5 * place * place + 0.919, -9.0, 9.0))
            move = (normal - place) / slope
            value = np.maximum(value + clamp(move, -2 * spread - 1, 2 * spread + 1), -0.9)
        missed = (value <= 0) & (self.cdf(np.zeros_like(value)) < ndtr(normal))
        return np.where(missed, 1.0, np.maximum(value, 0.0))

    def pit(self, value: Array, uniform: Array) -> Array:
        """Randomised probability integral transform: uniform on (0, 1) under a right model; to test calibration.

        Args:
            value: Counts, shape (n,).
            uniform: Uniform random numbers, shape (n,).
        """
        below, _ = self.log_tails(value)
        place: Array = np.exp(below) - (1 - uniform) * np.exp(self.log_density(value))
        return clamp(place, 0.0, 1.0)


def _less(tail: Array, part: Array) -> Array:
    """log(e^tail - e^part), where part is at most half of the tail."""
    return tail + np.log1p(-np.exp(np.minimum(part - tail, -_LN2)))


@kernel
def mid_tail(tail: float, log_density: float) -> float:
    """Log of a tail in which a value's own probability counts half; ``tail``: log of that in which it counts whole."""
    part = min(log_density - _LN2 - tail, -_LN2)
    return tail + math.log1p(-math.exp(part))
