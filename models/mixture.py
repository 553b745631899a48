"""Bayesian mixture of experts: whom to believe, and what follows for a value."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.special import ndtr, ndtri

from models.arrays import LARGEST, Array, Ints, clamp, log_sum_exp, total
from models.families.base import Predictive
from models.families.each import Each
from models.families.log_like import LogLike
from models.families.student_t import StudentT

LEAST_WEIGHT = 1e-6
"""No expert's weight falls below about this, so that each can come back."""

_STEP = 1.0
"""A single value moves the balance between two experts by at most this log likelihood ratio: no outlier decides."""

_TURNS = 1
"""Steps of the root finder after the ends are known (test: how right the probability then is)."""

_ALMOST_ALL = 1 - 1e-9


def reweigh(log_weights: Array, log_density: Array, forget: Array | float) -> Array:
    """The experts' log weights after a value: the old ones fade to equality, the likelihood of the value is added.

    Args:
        log_weights: Normalised, shape (k, n).
        log_density: What each thought of the value, shape (k, n).
        forget: Share of the old log weights that is forgotten.

    Source: A. E. Raftery, M. Kárný, P. Ettler, Online prediction under model uncertainty via dynamic model averaging,
    Technometrics 52 (2010).

    >>> np.exp(reweigh(np.log([[0.5], [0.5]]), np.log([[0.6], [0.4]]), 0.01)).round(3)
    array([[0.6],
           [0.4]])
    """
    best = log_density.max(axis=0)
    free = (1 - forget) * log_weights + np.maximum(log_density - best, -_STEP)
    kept: Array = np.maximum(free - log_sum_exp(free), np.log(LEAST_WEIGHT))
    return kept - log_sum_exp(kept)


class Mixture(Predictive):
    """The experts' predictives, weighted.

    Args:
        parts: What each of k experts predicts.
        log_weights: Log of the weight of each, normalised, shape (k, n).

    >>> from models.families.student_t import StudentT
    >>> one = np.ones(1)
    >>> parts = [StudentT(0 * one, one, 50 * one), StudentT(10 * one, one, 50 * one)]
    >>> two = Mixture(parts, np.log([one / 2, one / 2]))
    >>> two.cdf(np.array([5.0]))
    array([0.5])
    >>> two.quantile(ndtri(np.array([[0.0005], [0.9995]]))).round(1)
    array([[-3.3],
           [13.3]])
    """

    def __init__(self, parts: Sequence[Predictive], log_weights: Array) -> None:
        self.parts, self.log_weights = parts, log_weights
        self.each, self.weights = Each(parts), np.exp(log_weights)
        self._by_row = self.weights[:, None]

    def log_density(self, value: Array) -> Array:
        """See `Predictive`; values of shape (n,)."""
        return log_sum_exp(self.log_weights + self.each.log_density(value))

    def log_tails(self, value: Array) -> tuple[Array, Array]:
        """See `Predictive`; values of shape (n,)."""
        below, above = self.each.log_tails(value)
        return log_sum_exp(self.log_weights + below), log_sum_exp(self.log_weights + above)

    def surprise(self, value: Array) -> Array:
        """-ln of the two-sided tail probability of the value, at least 0."""
        below, above = self.log_tails(value)
        rarity: Array = np.maximum(-np.log(2.0) - np.minimum(below, above), 0.0)
        return rarity

    def cdf(self, value: Array) -> Array:
        """See `Predictive`."""
        return total(self.each.cdf(value) * (self._by_row if value.ndim > 1 else self.weights))

    def log_mass(self, value: Array, width: Array) -> Array:
        """Log of the probability of an interval round the value, shape (n,): to compare with that of an atom."""
        low, high = self.cdf(np.array([value - 0.5 * width, value + 0.5 * width]))
        mass: Array = np.log(np.maximum(high - low, 1e-300))
        return mass

    def part(self, rows: Ints) -> Mixture:
        """That of some of the series; of Student-t's, plain or on a log-like axis."""
        return Mixture([_taken(part, rows) for part in self.parts], self.log_weights[:, rows])

    def medians(self) -> Array:
        """Where each expert expects the value, shape (k, n)."""
        return self.each.median()

    def typical(self) -> Array:
        """The experts' medians, weighted: where the value is expected; shape (n,)."""
        return total(self.weights * self.medians())

    def quantile(self, normal: Array) -> Array:
        """See `Predictive`; ``normal`` of shape (m, 1), in the tails: near the middle the root finder may stop early.

        A root by secants between bounds that are close in the tails: a mixture of k parts of weights w
        has mass p in its lower tail no further out than the outermost of the parts' quantiles at p / (k w), no further
        in than the outermost of those at p / w, and nowhere outside of the parts' quantiles at p.
        """
        low, high = self._bounds(normal)
        count = len(normal)
        misses = self._miss(np.concatenate([low, high]), np.concatenate([normal, normal]))
        miss_low, miss_high = misses[:count], misses[count:]
        for _ in range(_TURNS):
            middle = _secant(low, high, miss_low, miss_high)
            miss = self._miss(middle, normal)
            under = miss < 0
            low, miss_low = np.where(under, middle, low), np.where(under, miss, miss_low)
            high, miss_high = np.where(under, high, middle), np.where(under, miss_high, miss)
        return _secant(low, high, miss_low, miss_high)

    def _bounds(self, normal: Array) -> tuple[Array, Array]:
        side = np.where(normal > 0, -1.0, 1.0)
        count, rows = len(normal), len(self.parts)
        inner = ndtr(-np.abs(normal)) / self._by_row
        asked = np.empty((rows, 3 * count, inner.shape[-1]))
        asked[:, :count] = normal
        asked[:, count : 2 * count] = side * ndtri(np.minimum(inner, _ALMOST_ALL))
        asked[:, 2 * count :] = side * ndtri(np.minimum(inner / rows, _ALMOST_ALL))
        told = clamp(self.each.quantile(asked), -LARGEST, LARGEST)
        ends, outward = told[:, :count], side * told[:, count:].reshape(rows, 2, count, -1)
        inside, outside = side * outward.min(axis=0)
        low = np.maximum(np.minimum(inside, outside), ends.min(axis=0))
        high = np.minimum(np.maximum(inside, outside), ends.max(axis=0))
        return low, np.maximum(low, high)

    def _miss(self, value: Array, normal: Array) -> Array:
        miss: Array = ndtri(clamp(self.cdf(value), 1e-300, 1 - 1e-16)) - normal
        return miss


def _taken(part: Predictive, rows: Ints) -> Predictive:
    if isinstance(part, LogLike):
        return LogLike(_taken(part.inner, rows), part.unit[rows])
    assert isinstance(part, StudentT)
    return StudentT(part.location[rows], part.scale[rows], part.dof[rows])


def _secant(low: Array, high: Array, miss_low: Array, miss_high: Array) -> Array:
    rise = np.maximum(miss_high - miss_low, 1e-12)
    share = clamp(-miss_low / rise, 0.0, 1.0)
    return low * (1 - share) + high * share
