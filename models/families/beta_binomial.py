"""Ratios: successes out of a known or assumed number of trials, with an unknown chance; conjugate, with fading.

The posterior of the chance is Beta(½ + successes, ½ + failures). Trials of one window are rarely independent. How much
more the ratios vary than those of independent trials is learned from the predictions' own errors and widens the
predictive, a beta-binomial.

Sources: A. Gelman et al., Bayesian Data Analysis (3rd ed.), 2.4; the correlation of trials by moments: D. Williams,
Extra-binomial variation in logistic linear models, JRSS C 31 (1982); the fading as in M. West, J. Harrison, Bayesian
Forecasting and Dynamic Models (1997), chapter 10; the beta-binomial: N. Johnson, A. Kemp, S. Kotz, Univariate Discrete
Distributions (2005), 6.2.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from models.families.discrete import mid_tail
from models.kernels import kernel, within
from models.numbers import special
from models.numbers.arrays import Columns
from models.records import Record

_TERMS = 96
"""A tail is summed term by term so far; what is left then is bounded by a geometric series."""

_ENOUGH = 1e-10

_FLAT = 0.97
"""Where the terms still fall more slowly, the tail is that of a beta distribution of the same mean and variance."""

_SETTLED = 10.0
"""Windows that the belief in independent trials (dispersion 1) is worth."""

_UNDERFLOW = 1e-280
_LN2 = math.log(2.0)


class Successes(NamedTuple):
    """Beta-binomial: successes among ``trials``, the chance itself Beta(yes, no).

    Args:
        trials: Number of trials, at least 1.
        yes: First parameter of the chance's beta distribution, above 0.
        no: Second parameter, above 0.
    """

    trials: float
    yes: float
    no: float


def new_state(n: int) -> Columns:
    """The columns for n series of which nothing is known, all faded numbers.

    ``successes``, ``failures``, ``windows``; and ``excess``, squared errors, each in units of the variance of
    independent trials, less 1, over the trials less 1: an estimate of the correlation of two trials in a window.
    """
    return {name: np.zeros(n, np.float32) for name in ("successes", "failures", "windows", "excess")}


@kernel
def correlation(state: Record) -> float:
    """Correlation of two trials of one window, in [0, 1)."""
    return within(state.excess / (_SETTLED + state.windows), 0.0, 0.99)


@kernel
def ratio_ahead(state: Record, trials: float) -> Successes:
    """Beta-binomial of the next number of successes.

    Args:
        state: The columns.
        trials: Out of how many, at least 1.
    """
    yes, no = 0.5 + state.successes, 0.5 + state.failures
    alike = max(correlation(state), 1e-12)
    total = 1 / (1 / (yes + no) + alike / (1 - alike))
    chance = yes / (yes + no)
    return Successes(trials, max(chance * total, 1e-6), max((1 - chance) * total, 1e-6))


@kernel
def learn_ratio(state: Record, share: float, trials: float, weight: float, forget: float) -> None:
    """Adds a ratio.

    Args:
        state: The columns; changed.
        share: In [0, 1].
        trials: The number that it is a share of, at least 1; an assumed one where it is not known.
        weight: What it counts, in [0, 1].
        forget: Share of the old statistics that is forgotten.
    """
    keep, count = 1 - forget, share * trials
    yes, no = 0.5 + state.successes, 0.5 + state.failures
    chance = yes / (yes + no)
    alone = trials * chance * (1 - chance) * (1 + (trials - 1) / (yes + no + 1))
    odd = min((count - trials * chance) ** 2 / max(alone, 1e-12), trials)
    counted = weight if state.windows > 0 and trials > 1 else 0.0
    state.successes = state.successes * keep + weight * count
    state.failures = state.failures * keep + weight * (trials - count)
    state.windows = state.windows * keep + weight
    state.excess = state.excess * keep + counted * (odd - 1) / max(trials - 1, 1.0)


@kernel
def mean(ahead: Successes) -> float:
    """Expected number of successes."""
    return ahead.trials * ahead.yes / (ahead.yes + ahead.no)


@kernel
def variance(ahead: Successes) -> float:
    """Variance of the number of successes."""
    total = ahead.yes + ahead.no
    return mean(ahead) * (ahead.no / total) * (total + ahead.trials) / (total + 1)


@kernel
def log_chance(ahead: Successes, count: float) -> float:
    """Log of the probability of a number of successes, smoothly continued.

    >>> round(math.exp(log_chance(Successes(10.0, 2.0, 6.0), 0.0)), 4)
    0.1544
    """
    left = ahead.trials - count
    ways = special.gammaln(ahead.trials + 1) - special.gammaln(count + 1) - special.gammaln(left + 1)
    return ways + special.betaln(count + ahead.yes, left + ahead.no) - special.betaln(ahead.yes, ahead.no)


@kernel
def log_tails(ahead: Successes, count: float) -> tuple[float, float]:
    """Logs of P(X ≤ count) and P(X ≥ count).

    >>> below, above = log_tails(Successes(10.0, 2.0, 6.0), 4.0)
    >>> round(math.exp(below), 4)
    0.8405
    """
    log, low = log_chance(ahead, count), count <= mean(ahead)
    near, away = (count, ahead.trials - count) if low else (ahead.trials - count, count)
    yes, no = (ahead.yes, ahead.no) if low else (ahead.no, ahead.yes)
    small = _tail(ahead, near, yes, away, no, log)
    large = math.log(max(1 - math.exp(small) + math.exp(log), 0.5 * math.exp(log)))
    below, above = (small, large) if low else (large, small)
    below = 0.0 if count >= ahead.trials else min(below, 0.0)
    return below, 0.0 if count <= 0 else min(above, 0.0)


@kernel
def _tail(ahead: Successes, count: float, yes: float, left: float, no: float, log: float) -> float:
    """Log of the sum of the probabilities of ``count``, ``count`` - 1, ..., where that of ``count`` is e^log."""
    total, term, ratio = 1.0, 1.0, 1.0
    for step in range(_TERMS):
        ratio = max(count - step, 0.0) * (left + step + no) / (left + step + 1) / max(count - step - 1 + yes, 1e-9)
        term *= min(ratio, 1e3)
        total += term
        if term < _ENOUGH * total:
            term = 0.0
            break
    if term > 0 and count > _TERMS and ratio > _FLAT:
        return _smooth(ahead, count, yes, no, log)
    return log + math.log(total + term * ratio / (1 - min(ratio, _FLAT)))


@kernel
def _like(ahead: Successes, yes: float, no: float) -> tuple[float, float]:
    """The beta distribution of the mean and the variance of the ratio."""
    chance = yes / (yes + no)
    total = max(chance * (1 - chance) * ahead.trials * ahead.trials / variance(ahead) - 1, 1e-6)
    return chance * total, (1 - chance) * total


@kernel
def _smooth(ahead: Successes, count: float, yes: float, no: float, log: float) -> float:
    a, b = _like(ahead, yes, no)
    area = special.betainc(a, b, min((count + 0.5) / ahead.trials, 1.0))
    return math.log(area) if area > _UNDERFLOW else log


@kernel
def ratio_quantile(ahead: Successes, z: float) -> float:
    """The ratio below which a standard normal has the mass that it has below z: of the beta distribution alike."""
    yes, no = _like(ahead, ahead.yes, ahead.no)
    place = max(ahead.trials * special.betaincinv(yes, no, special.ndtr(z)) - 0.5, 0.0)
    return min(place / ahead.trials, 1.0)


@kernel
def ratio_surprise(ahead: Successes, count: float) -> float:
    """-ln of the two-sided mid-p of a number of successes, at least 0."""
    below, above = log_tails(ahead, count)
    log = log_chance(ahead, count)
    return max(-_LN2 - min(mid_tail(below, log), mid_tail(above, log)), 0.0)
