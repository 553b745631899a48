"""Negative binomial, vectorised: the predictive of a Poisson count with a gamma-distributed rate."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import betainc, gammaln

from models.arrays import Array
from models.families.discrete import LEAST_LOG, Discrete

_UNDERFLOW = 1e-280


@dataclass(frozen=True)
class NegativeBinomial(Discrete):
    """Counts with mean m and variance m + m² / r of each of n series.

    Args:
        expected: Mean m, above 0, shape (n,).
        size: r, above 0, shape (n,); the larger, the closer to Poisson.

    Source: tails by the incomplete beta function: G. Patil, On the evaluation of the negative binomial distribution
    with examples, Technometrics 2 (1960); beyond what a float holds by the geometric series that bounds them.

    >>> counts = NegativeBinomial(np.array([2.0]), np.array([4.0]))
    >>> np.exp(counts.log_density(np.array([3.0]))).round(4), counts.cdf(np.array([3.0])).round(4)
    (array([0.1463]), array([0.8267]))
    >>> below, above = counts.log_tails(np.array([1e4]))
    >>> above.round(1)
    array([-10961.5])
    """

    expected: Array
    size: Array

    def mean(self) -> Array:
        """See `Discrete`."""
        return self.expected

    def variance(self) -> Array:
        """See `Discrete`."""
        return self.expected + self.expected * self.expected / self.size

    def log_density(self, value: Array) -> Array:
        """See `Predictive`; the probability of the count, smoothly continued between counts."""
        count = np.maximum(value, 0.0)
        size, mean = self.size, self.expected
        ways = gammaln(count + size) - gammaln(size) - gammaln(count + 1)
        log = ways - size * np.log1p(mean / size) - count * np.log1p(size / mean)
        return np.where(value < 0, LEAST_LOG, log)

    def log_tails(self, value: Array) -> tuple[Array, Array]:
        """See `Predictive`; both tails include the value."""
        count = np.maximum(value, 0.0)
        size, mean = self.size, self.expected
        stop = size / (size + mean)
        go = mean / (size + mean)
        below = betainc(size, count + 1, stop)
        above = np.where(count > 0, betainc(np.maximum(count, 1e-300), size, go), 1.0)
        log = self.log_density(count)
        falls = np.minimum(count / np.maximum((count + size - 1) * go, 1e-300), 0.999999)
        rises = np.minimum((count + size) / (count + 1) * go, 0.999999)
        log_below = np.where(below > _UNDERFLOW, np.log(np.maximum(below, _UNDERFLOW)), log - np.log1p(-falls))
        log_above = np.where(above > _UNDERFLOW, np.log(np.maximum(above, _UNDERFLOW)), log - np.log1p(-rises))
        return np.where(value < 0, LEAST_LOG, np.minimum(log_below, 0.0)), np.minimum(log_above, 0.0)

    def cdf(self, value: Array) -> Array:
        """See `Predictive`."""
        stop = self.size / (self.size + self.expected)
        area: Array = np.asarray(betainc(self.size, np.maximum(value, -1.0) + 1, stop), np.float64)
        return area
