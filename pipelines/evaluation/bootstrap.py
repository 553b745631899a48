"""Paired bootstrap intervals: how certain a mean difference or ratio over a few series is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from models.numbers.arrays import Array, Ints

RESAMPLES = 10_000


@dataclass(frozen=True)
class Interval:
    """A mean and its 95 % confidence interval."""

    mean: float
    low: float
    high: float


def paired(ours: Array, theirs: Array, seed: int = 0) -> Interval:
    """The mean of the differences of each series, with the percentile interval over resampled series.

    Args:
        ours: A figure for each series, shape (n,).
        theirs: The same figure of another method, in the same order, shape (n,).
        seed: Seed of the resampling.

    Source: B. Efron, R. Tibshirani, An introduction to the bootstrap (1993), chapter 13.

    >>> paired(np.array([0.5, 0.6, 0.7]), np.array([0.4, 0.5, 0.6])).low > 0
    True
    """
    difference = np.asarray(ours) - np.asarray(theirs)
    return _interval(difference, lambda rows: difference[rows].mean(axis=1), float(difference.mean()), seed)


def ratio(ours: Array, theirs: Array, seed: int = 0) -> Interval:
    """The ratio of the means of two methods; each resample takes the same series of both. Arguments as in `paired`.

    >>> ratio(np.array([0.6, 0.9]), np.array([0.4, 0.6]))
    Interval(mean=1.5, low=1.5, high=1.5)
    """
    ours, theirs = np.asarray(ours), np.asarray(theirs)
    whole = float(ours.mean() / theirs.mean())
    return _interval(ours, lambda rows: ours[rows].mean(axis=1) / theirs[rows].mean(axis=1), whole, seed)


def _interval(sample: Array, statistic: Callable[[Ints], Array], mean: float, seed: int) -> Interval:
    rows = np.random.default_rng(seed).integers(0, len(sample), (RESAMPLES, len(sample)))
    low, high = np.percentile(statistic(rows), [2.5, 97.5]).round(12)
    return Interval(mean, float(low), float(high))
