"""Negative binomial, vectorised: the predictive of a Poisson count with a gamma-distributed rate."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import betainc, gammaln, ndtr, ndtri

from models.kernels import kernel, within
from models.numbers import special
from models.numbers.arrays import Array, clamp

_UNDERFLOW = 1e-280

_LEAST_LOG = -1e6
"""The logarithm that stands for the probability of what cannot be."""

_STEPS = 6
"""Newton steps to a quantile."""


@dataclass(frozen=True)
class NegativeBinomial:
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

    def log_density(self, value: Array) -> Array:
        """Log of the probability of the count, smoothly continued between counts; shape (n,) or (m, n)."""
        count = np.maximum(value, 0.0)
        size, mean = self.size, self.expected
        ways = gammaln(count + size) - gammaln(size) - gammaln(count + 1)
        log = ways - size * np.log1p(mean / size) - count * np.log1p(size / mean)
        return np.where(value < 0, _LEAST_LOG, log)

    def log_tails(self, value: Array) -> tuple[Array, Array]:
        """Logs of P(X ≤ value) and P(X ≥ value), finite however far out the value lies."""
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
        return np.where(value < 0, _LEAST_LOG, np.minimum(log_below, 0.0)), np.minimum(log_above, 0.0)

    def cdf(self, value: Array) -> Array:
        """P(X ≤ value), continued smoothly between counts."""
        stop = self.size / (self.size + self.expected)
        area: Array = np.asarray(betainc(self.size, np.maximum(value, -1.0) + 1, stop), np.float64)
        return area

    def quantile(self, normal: Array) -> Array:
        """The value below which a standard normal has the mass that it has below ``normal``, never below 0.

        A root of the continued distribution function, so round it outwards. Newton steps on the normal scale from a
        Cornish-Fisher start.
        """
        mean, variance = self.expected, self.expected + self.expected * self.expected / self.size
        spread = np.sqrt(variance)
        skew = (2 * variance / np.maximum(mean, 1e-12) - 1) / np.maximum(spread, 1e-12)
        value = np.maximum(mean - 0.5 + spread * (normal + np.minimum(skew, 3.0) * (normal * normal - 1) / 6), -0.9)
        for _ in range(_STEPS):
            place = ndtri(clamp(self.cdf(value), 1e-300, 1 - 1e-16))
            slope = np.exp(clamp(self.log_density(np.maximum(value, 0.0)) + 0.5 * place * place + 0.919, -9.0, 9.0))
            move = (normal - place) / slope
            value = np.maximum(value + clamp(move, -2 * spread - 1, 2 * spread + 1), -0.9)
        missed = (value <= 0) & (self.cdf(np.zeros_like(value)) < ndtr(normal))
        return np.where(missed, 1.0, np.maximum(value, 0.0))


class Counted(NamedTuple):
    """`NegativeBinomial` of one series: the mean, and r."""

    mean: float
    size: float


@kernel
def log_chance(ahead: Counted, count: float) -> float:
    """Log of the probability of a count of at least 0, smoothly continued between counts.

    >>> round(log_chance(Counted(2.0, 4.0), 3.0), 3)  # ln 0.1463
    -1.922
    """
    size, mean = ahead.size, ahead.mean
    ways = special.gammaln(count + size) - special.gammaln(size) - special.gammaln(count + 1)
    return ways - size * math.log1p(mean / size) - count * math.log1p(size / mean)


@kernel
def log_tails(ahead: Counted, count: float) -> tuple[float, float]:
    """Logs of P(X ≤ count) and P(X ≥ count), of a count of at least 0."""
    size, mean = ahead.size, ahead.mean
    stop, go = size / (size + mean), mean / (size + mean)
    log = log_chance(ahead, count)
    below = special.betainc(size, count + 1, stop)
    above = special.betainc(count, size, go) if count > 0 else 1.0
    falls = min(count / max((count + size - 1) * go, 1e-300), 0.999999)
    rises = min((count + size) / (count + 1) * go, 0.999999)
    log_below = math.log(below) if below > _UNDERFLOW else log - math.log1p(-falls)
    log_above = math.log(above) if above > _UNDERFLOW else log - math.log1p(-rises)
    return min(log_below, 0.0), min(log_above, 0.0)


@kernel
def count_cdf(ahead: Counted, value: float) -> float:
    """P(X ≤ value), continued smoothly between counts."""
    return special.betainc(ahead.size, max(value, -1.0) + 1, ahead.size / (ahead.size + ahead.mean))


@kernel
def count_quantile(ahead: Counted, z: float) -> float:
    """The count below which a standard normal has the mass that it has below z; see `NegativeBinomial.quantile`."""
    variance = ahead.mean + ahead.mean * ahead.mean / ahead.size
    spread = math.sqrt(variance)
    skew = (2 * variance / max(ahead.mean, 1e-12) - 1) / max(spread, 1e-12)
    value = max(ahead.mean - 0.5 + spread * (z + min(skew, 3.0) * (z * z - 1) / 6), -0.9)
    for _ in range(_STEPS):
        place = special.ndtri(within(count_cdf(ahead, value), 1e-300, 1 - 1e-16))
        slope = math.exp(within(log_chance(ahead, max(value, 0.0)) + 0.5 * place * place + 0.919, -9.0, 9.0))
        value = max(value + within((z - place) / slope, -2 * spread - 1, 2 * spread + 1), -0.9)
    if value <= 0 and count_cdf(ahead, 0.0) < special.ndtr(z):
        return 1.0
    return max(value, 0.0)
