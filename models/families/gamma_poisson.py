"""Counts and event rates: Poisson with an unknown rate, conjugate, whose sufficient statistics fade exponentially."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from models.families.negative_binomial import Counted, NegativeBinomial
from models.kernels import kernel
from models.numbers.arrays import Array
from models.records import Record

_LARGEST_COUNT = 1e15
"""Counts above this are judged as this: beyond it a float no longer tells neighbours apart."""

_SETTLED = 10.0
"""Windows that the belief in Poisson counts (dispersion 1) is worth."""


@dataclass(frozen=True)
class GammaPoisson:
    """Sufficient statistics of n series: the posterior of the rate is Gamma(a₀ + events, b₀ + exposure).

    Real counts vary more than Poisson ones. The ratio of the variance to the mean, at least 1, is learned from the
    predictions' own errors and widens the predictive; with the prior it cannot be less than Poisson.

    Args:
        events: Faded number of events, shape (n,).
        exposure: Faded exposure (e.g. seconds, requests) in which they came, shape (n,).
        windows: Faded number of windows, shape (n,).
        excess: Faded sum of squared errors, each in units of the variance that a Poisson count would have had.

    Sources: A. Gelman et al., Bayesian Data Analysis (3rd ed.), 2.6; the fading as in M. West, J. Harrison, Bayesian
    Forecasting and Dynamic Models (1997), 10.8; dispersion: P. McCullagh, J. Nelder, Generalized Linear Models
    (1989), 6.2.

    >>> known = GammaPoisson.empty(1)
    >>> for count in (0.0, 1.0, 0.0, 3.0):
    ...     known = known.learn(np.array([count]), np.array([60.0]), 1.0, 0.0)
    >>> known.events, known.exposure
    (array([4.]), array([240.]))
    >>> known.predictive(np.array([60.0])).expected.round(3)  # (4 + 0.5) / 240 · 60
    array([1.125])
    """

    events: Array
    exposure: Array
    windows: Array
    excess: Array

    @classmethod
    def empty(cls, n: int) -> GammaPoisson:
        """Nothing seen."""
        return cls(np.zeros(n), np.zeros(n), np.zeros(n), np.zeros(n))

    def learn(self, count: Array, exposure: Array, weight: Array | float, forget: Array | float) -> GammaPoisson:
        """The statistics after one more count each.

        Args:
            count: At least 0, shape (n,).
            exposure: What it was counted in, above 0, shape (n,).
            weight: What it counts, in [0, 1].
            forget: Share of the old statistics that is forgotten.
        """
        count = np.minimum(count, _LARGEST_COUNT)
        keep = 1 - forget
        foreseen = self.predictive(exposure)
        error = count - foreseen.expected
        shared = foreseen.expected + foreseen.expected**2 / np.maximum(0.5 + self.events, 0.5)
        counted = np.where(self.windows > 0, weight, 0.0)
        odd = np.minimum(error * error / np.maximum(shared, 1e-12), 100.0 * self.dispersion())
        return GammaPoisson(
            self.events * keep + weight * count,
            self.exposure * keep + weight * exposure,
            self.windows * keep + weight,
            self.excess * keep + counted * odd,
        )

    def dispersion(self) -> Array:
        """Variance of the counts over that of Poisson counts, at least 1, shape (n,)."""
        return np.maximum((_SETTLED + self.excess) / (_SETTLED + self.windows), 1.0)

    def predictive(
        self, exposure: Array, prior_events: Array | float = 0.5, prior_exposure: Array | float = 0.0
    ) -> NegativeBinomial:
        """Negative binomial of the next count.

        Args:
            exposure: What the next count is counted in, above 0, shape (n,).
            prior_events: a₀: 0.5 is Jeffreys' prior; from other machines: events that the prior rate is worth.
            prior_exposure: b₀: exposure that it is worth.
        """
        shape = prior_events + self.events
        over = prior_exposure + self.exposure
        rate = np.where(over > 0, shape / np.where(over > 0, over, 1.0), 1 / np.maximum(exposure, 1e-12))
        mean = np.maximum(rate * exposure, 1e-12)
        return NegativeBinomial(mean, mean / (self.dispersion() - 1 + mean / shape))


@kernel
def _dispersion(state: Record) -> float:
    return max((_SETTLED + state.excess) / (_SETTLED + state.windows), 1.0)


@kernel
def count_ahead(state: Record, exposure: float) -> Counted:
    """The next count of one series, as `GammaPoisson.predictive`; ``state``: the columns."""
    shape = 0.5 + state.events
    rate = shape / state.exposure if state.exposure > 0 else 1 / max(exposure, 1e-12)
    mean = max(rate * exposure, 1e-12)
    return Counted(mean, mean / (_dispersion(state) - 1 + mean / shape))


@kernel
def learn_count(state: Record, count: float, exposure: float, weight: float, forget: float) -> None:
    """Adds a count to the columns of one series, as `GammaPoisson.learn`."""
    count, keep, foreseen = min(count, _LARGEST_COUNT), 1 - forget, count_ahead(state, exposure).mean
    shared = foreseen + foreseen**2 / (0.5 + state.events)
    odd = min((count - foreseen) ** 2 / max(shared, 1e-12), 100.0 * _dispersion(state))
    state.excess = state.excess * keep + (weight * odd if state.windows > 0 else 0.0)
    state.events = state.events * keep + weight * count
    state.exposure = state.exposure * keep + weight * exposure
    state.windows = state.windows * keep + weight
