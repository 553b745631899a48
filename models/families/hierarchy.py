"""Priors of one machine's metric from the same metric on the other machines: empirical Bayes by moments."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from models.numbers.arrays import SMALLEST, Array, Flags, Ints

_LEAST, _MOST = 0.05, 50.0


class Priors(NamedTuple):
    """A `Prior` for each of n series; all of shape (n,)."""

    mean: Array
    strength: Array
    shape: Array
    variance: Array


@dataclass(frozen=True)
class Peers:
    """What is known of each group of peers (all series of one metric), as sums over its members.

    Sums are taken over the state as it was before a window, in the order of the rows, so that a verdict does not depend
    on how the window's rows were batched. A group's own sums need not be kept: they are worked out anew.

    Args:
        members: Series that have something to say, shape (g,).
        mean: Mean of their means, shape (g,).
        between: Variance of their means, beyond what their own variances explain, shape (g,).
        within: Mean of their variances (geometric), shape (g,).
        likeness: Half the observations that ``within`` is worth for a new member, shape (g,).

    Sources: B. Efron, C. Morris, Data analysis using Stein's estimator and its generalizations, JASA 70 (1975); the
    variances' part by the moments of log variances: G. Smyth, Linear models and empirical Bayes methods for assessing
    differential expression, Statistical Applications in Genetics 3 (2004).

    >>> group = np.zeros(3, np.int64)
    >>> count, mean, squares = np.array([100.0, 100.0, 0.0]), np.array([9.0, 11.0, 0.0]), np.array([400.0, 400.0, 0.0])
    >>> peers = Peers.of(group, 1, count, mean, squares)
    >>> peers.mean, peers.between.round(2), peers.within.round(2)
    (array([10.]), array([1.96]), array([4.06]))
    >>> prior = peers.prior(group)
    >>> prior.mean[2], prior.strength[2].round(2)  # a new series: around 10, worth 4.06 / 1.96 observations
    (np.float64(10.0), np.float64(2.07))
    """

    members: Array
    mean: Array
    between: Array
    within: Array
    likeness: Array

    @classmethod
    def of(cls, group: Ints, groups: int, count: Array, mean: Array, squares: Array, least: float = 10.0) -> Peers:
        """The peers of each group from the statistics of its members.

        Args:
            group: Group of each series, 0 ≤ group < groups, shape (n,).
            groups: Number of groups.
            count: Effective observations of each series, shape (n,).
            mean: Their mean.
            squares: Their sum of squared deviations from it.
            least: Series with fewer observations say nothing.
        """
        speaks = count >= least
        own = np.where(speaks, squares, 0.0) / np.maximum(count - 1.5, 1.0)
        positive = speaks & (own > 0)
        members = _sum(group, groups, speaks, np.ones(len(group)))
        divisor = np.maximum(members, 1.0)
        centre = _sum(group, groups, speaks, mean) / divisor
        spread = _sum(group, groups, speaks, (mean - centre[group]) ** 2) / np.maximum(members - 1, 1.0)
        noise = _sum(group, groups, speaks, own / np.maximum(count, 1.0)) / divisor

        logs = np.log(np.where(positive, own, 1.0))
        moving = np.maximum(_sum(group, groups, positive, np.ones(len(group))), 1.0)
        log_within = _sum(group, groups, positive, logs) / moving
        varied = _sum(group, groups, positive, (logs - log_within[group]) ** 2) / np.maximum(moving - 1, 1.0)
        sampled = _sum(group, groups, positive, 2 / np.maximum(count - 1, 1.0)) / moving
        any_moving = _sum(group, groups, positive, np.ones(len(group))) > 0
        within = np.where(any_moving, np.exp(log_within), 0.0)
        likeness = 1 / np.maximum(varied - sampled, 1 / _MOST)
        return cls(members, centre, np.maximum(spread - noise, 0.0), within, np.clip(likeness, 0.5, _MOST))

    def has_peers(self, group: Ints) -> Flags:
        """Whether a series has peers to learn from, shape (n,)."""
        return (self.members[group] >= 2) & (self.within[group] > 0)

    def prior(self, group: Ints) -> Priors:
        """The prior of each series; only where it `has_peers`.

        Args:
            group: Group of each series, shape (n,).
        """
        within, between = self.within[group], self.between[group]
        ratio = within / np.maximum(np.maximum(between, within / _MOST), SMALLEST)
        return Priors(self.mean[group], np.clip(ratio, _LEAST, _MOST), self.likeness[group], within)


def _sum(group: Ints, groups: int, which: Flags, values: Array) -> Array:
    """Sums over the chosen members of each group, always in the order of the rows."""
    sums: Array = np.bincount(group, weights=np.where(which, values, 0.0), minlength=groups).astype(np.float64)
    return sums
