"""Ratios: successes out of a known or assumed number of trials, with an unknown chance; conjugate, with fading."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import betainc, betaincinv, betaln, gammaln, ndtr

from models.arrays import Array, Flags
from models.families.discrete import LEAST_LOG, Discrete

_TERMS = 96
"""A tail is summed term by term so far; what is left then is bounded by a geometric series."""

_ENOUGH = 1e-10

_FLAT = 0.97
"""Where the terms still fall more slowly, the tail is that of a beta distribution of the same mean and variance."""

_SETTLED = 10.0
"""Windows that the belief in independent trials (dispersion 1) is worth."""

_UNDERFLOW = 1e-280


@dataclass(frozen=True)
class PolyaCounts(Discrete):
    """Beta-binomial: successes among ``trials`` of each of n series, the chance itself Beta(yes, no).

    Args:
        trials: Number of trials, at least 1, shape (n,).
        yes: First parameter of the chance's beta distribution, above 0, shape (n,).
        no: Second parameter, above 0, shape (n,).

    Source: N. Johnson, A. Kemp, S. Kotz, Univariate Discrete Distributions (2005), 6.2.

    >>> errors = PolyaCounts(np.array([10.0]), np.array([2.0]), np.array([6.0]))
    >>> np.exp(errors.log_density(np.array([0.0]))).round(4), errors.cdf(np.array([4.0])).round(4)
    (array([0.1544]), array([0.8405]))
    """

    trials: Array
    yes: Array
    no: Array

    def mean(self) -> Array:
        """See `Discrete`."""
        return self.trials * self.yes / (self.yes + self.no)

    def variance(self) -> Array:
        """See `Discrete`."""
        total, mean = self.yes + self.no, self.mean()
        return mean * (self.no / total) * (total + self.trials) / (total + 1)

    def log_density(self, value: Array) -> Array:
        """See `Predictive`; the probability of the number of successes, smoothly continued."""
        count = np.minimum(np.maximum(value, 0.0), self.trials)
        left = self.trials - count
        ways = gammaln(self.trials + 1) - gammaln(count + 1) - gammaln(left + 1)
        log = ways + betaln(count + self.yes, left + self.no) - betaln(self.yes, self.no)
        return np.where((value < 0) | (value > self.trials), LEAST_LOG, log)

    def log_tails(self, value: Array) -> tuple[Array, Array]:
        """See `Predictive`; both tails include the value."""
        count = np.minimum(np.maximum(value, 0.0), self.trials)
        left, log, low = self.trials - count, self.log_density(count), count <= self.mean()
        near, away = np.where(low, count, left), np.where(low, left, count)
        yes, no = np.where(low, self.yes, self.no), np.where(low, self.no, self.yes)
        more, long = _outwards(near, yes, away, no)
        small = log + more
        if long.any():
            small = np.where(long, self._smooth(near, yes, no, log), small)
        large = np.log(np.maximum(1 - np.exp(small) + np.exp(log), 0.5 * np.exp(log)))
        below, above = np.where(low, small, large), np.where(low, large, small)
        below = np.where(value < 0, LEAST_LOG, np.where(value >= self.trials, 0.0, np.minimum(below, 0.0)))
        return below, np.where(value > self.trials, LEAST_LOG, np.where(value <= 0, 0.0, np.minimum(above, 0.0)))

    def cdf(self, value: Array) -> Array:
        """See `Predictive`."""
        inside = np.minimum(np.maximum(value, -1.0), self.trials)
        whole = np.floor(inside)
        before = np.where(whole < 0, 0.0, np.exp(self.log_tails(whole)[0]))
        after = np.exp(self.log_tails(np.minimum(whole + 1, self.trials))[0])
        area: Array = before + (inside - whole) * (after - before)
        return area

    def quantile(self, normal: Array) -> Array:
        """See `Predictive`: that of the beta distribution with the same mean and variance, round it outwards."""
        yes, no = self._like(self.yes, self.no)
        return np.maximum(self.trials * betaincinv(yes, no, ndtr(normal)) - 0.5, 0.0)

    def _like(self, yes: Array, no: Array) -> tuple[Array, Array]:
        chance = yes / (yes + no)
        total = chance * (1 - chance) * self.trials * self.trials / self.variance() - 1
        total = np.maximum(total, 1e-6)
        return chance * total, (1 - chance) * total

    def _smooth(self, count: Array, yes: Array, no: Array, log: Array) -> Array:
        area = betainc(*self._like(yes, no), np.minimum((count + 0.5) / self.trials, 1.0))
        return np.where(area > _UNDERFLOW, np.log(np.maximum(area, _UNDERFLOW)), log)


def _outwards(count: Array, yes: Array, left: Array, no: Array) -> tuple[Array, Flags]:
    """Log of the sum of the probabilities of ``count``, ``count`` - 1, ... over that of ``count``; if too long."""
    term = np.ones(np.broadcast_shapes(count.shape, yes.shape))
    total, ratio = term, term
    for step in range(_TERMS):
        ratio = np.maximum(count - step, 0.0) * (left + step + no) / (left + step + 1)
        ratio = ratio / np.maximum(count - step - 1 + yes, 1e-9)
        term = term * np.minimum(ratio, 1e3)
        total = total + term
        term = np.where(term < _ENOUGH * total, 0.0, term)
        if not term.any():
            break
    rest = term * ratio / (1 - np.minimum(ratio, _FLAT))
    return np.log(total + rest), (term > 0) & (count > _TERMS) & (ratio > _FLAT)


@dataclass(frozen=True)
class BetaBinomial:
    """Sufficient statistics of n series: the posterior of the chance is Beta(½ + successes, ½ + failures).

    Trials of one window are rarely independent. How much more the ratios vary than those of independent trials is
    learned from the predictions' own errors and widens the predictive.

    Args:
        successes: Faded number of successes, shape (n,).
        failures: Faded number of failures, shape (n,).
        windows: Faded number of windows, shape (n,).
        excess: Faded sum of squared errors, each in units of the variance of independent trials, less 1, over the
            trials less 1: an estimate of the correlation of two trials in a window.

    Sources: A. Gelman et al., Bayesian Data Analysis (3rd ed.), 2.4; the correlation of trials by moments: D.
    Williams, Extra-binomial variation in logistic linear models, JRSS C 31 (1982); the fading as in M. West, J.
    Harrison, Bayesian Forecasting and Dynamic Models (1997), chapter 10.

    >>> known = BetaBinomial.empty(1)
    >>> for share in (0.0, 0.1, 0.0, 0.1):
    ...     known = known.learn(np.array([share]), np.array([20.0]), 1.0, 0.0)
    >>> known.successes, known.failures
    (array([4.]), array([76.]))
    >>> known.predictive(np.array([20.0])).mean().round(3)  # 20 · 4.5 / 81
    array([1.111])
    """

    successes: Array
    failures: Array
    windows: Array
    excess: Array

    @classmethod
    def empty(cls, n: int) -> BetaBinomial:
        """Nothing seen."""
        return cls(np.zeros(n), np.zeros(n), np.zeros(n), np.zeros(n))

    def learn(self, share: Array, trials: Array, weight: Array | float, forget: Array | float) -> BetaBinomial:
        """The statistics after one more ratio each.

        Args:
            share: In [0, 1], shape (n,).
            trials: What it is a share of, at least 1; where not known, what is assumed; shape (n,).
            weight: What it counts, in [0, 1].
            forget: Share of the old statistics that is forgotten.
        """
        keep, count = 1 - forget, share * trials
        yes, no = 0.5 + self.successes, 0.5 + self.failures
        chance = yes / (yes + no)
        alone = trials * chance * (1 - chance) * (1 + (trials - 1) / (yes + no + 1))
        odd = np.minimum((count - trials * chance) ** 2 / np.maximum(alone, 1e-12), trials)
        judged = np.where((self.windows > 0) & (trials > 1), weight, 0.0)
        return BetaBinomial(
            self.successes * keep + weight * count,
            self.failures * keep + weight * (trials - count),
            self.windows * keep + weight,
            self.excess * keep + judged * (odd - 1) / np.maximum(trials - 1, 1.0),
        )

    def correlation(self) -> Array:
        """Correlation of two trials of one window, in [0, 1), shape (n,)."""
        found = self.excess / (_SETTLED + self.windows)
        return np.minimum(np.maximum(found, 0.0), 0.99)

    def predictive(self, trials: Array, prior_yes: Array | float = 0.5, prior_no: Array | float = 0.5) -> PolyaCounts:
        """Beta-binomial of the next number of successes.

        Args:
            trials: Out of how many, at least 1, shape (n,).
            prior_yes: ½ is Jeffreys' prior; from other machines: successes that the prior is worth.
            prior_no: The same of failures.
        """
        yes, no = prior_yes + self.successes, prior_no + self.failures
        correlation = np.maximum(self.correlation(), 1e-12)
        total = 1 / (1 / (yes + no) + correlation / (1 - correlation))
        chance = yes / (yes + no)
        return PolyaCounts(trials, np.maximum(chance * total, 1e-6), np.maximum((1 - chance) * total, 1e-6))
