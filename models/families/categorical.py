"""Constant and quantised series: a few distinct values with their probabilities, and a reserve for an unseen one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from models.arrays import SMALLEST, Array, Flags, Ints
from models.families.base import Predictive

SLOTS = 7
"""Distinct values that are remembered; of more, the rarest is given up."""

_SAME = 1e-9
"""Values that differ by a smaller share are the same value."""

_FAINT = 1e-3
"""A value whose faded count is below this is as good as unseen."""


@dataclass(frozen=True)
class Spikes(Predictive):
    """Distinct values with probabilities, and what is reserved for values not seen yet.

    Half of the reserve lies below all values and half above, so that an unseen value outside has the tail ``reserve``
    / 2 on its side. `log_rarity` knows of no order: there an unseen value between two others is as rare as one outside.

    Args:
        places: The values, shape (n, k).
        chances: Probability of each, 0 of empty slots, shape (n, k).
        reserve: Probability of any unseen value, shape (n,).
        step: Smallest difference between two values that means something, above 0, shape (n,).
    """

    places: Array
    chances: Array
    reserve: Array
    step: Array

    def log_rarity(self, value: Array) -> Array:
        """Log of the chance of a value that is at most as likely as this one: 0 for the likeliest, shape (n,)."""
        own = self._chance(value)[:, None]
        rarer = np.where(self.chances <= own, self.chances, 0.0).sum(axis=1)
        log: Array = np.log(np.minimum(rarer + self.reserve, 1.0))
        return log

    def log_density(self, value: Array) -> Array:
        """See `Predictive`: the probability of the value over the step, to compare with a density."""
        return np.log(self._chance(value)) - np.log(self.step)

    def log_tails(self, value: Array) -> tuple[Array, Array]:
        """See `Predictive`; both tails include the value."""
        if value.ndim > 1:
            pairs = [self.log_tails(row) for row in value]
            return np.array([pair[0] for pair in pairs]), np.array([pair[1] for pair in pairs])
        half, place = 0.5 * self.reserve, value[:, None]
        slack = _SAME * np.abs(place)
        below = np.where(self.places <= place + slack, self.chances, 0.0).sum(axis=1) + half
        above = np.where(self.places >= place - slack, self.chances, 0.0).sum(axis=1) + half
        return np.log(np.minimum(below, 1.0)), np.log(np.minimum(above, 1.0))

    def cdf(self, value: Array) -> Array:
        """See `Predictive`."""
        area: Array = np.exp(self.log_tails(value)[0])
        return area

    def quantile(self, normal: Array) -> Array:
        """See `Predictive`: the smallest value with that mass at or below it; in the reserve a step outside."""
        order = np.argsort(np.where(self.chances > 0, self.places, np.inf), axis=1, kind="stable")
        places = np.take_along_axis(self.places, order, 1)
        mass = np.cumsum(np.take_along_axis(self.chances, order, 1), axis=1) + 0.5 * self.reserve[:, None]
        used = np.take_along_axis(self.chances, order, 1) > 0
        highest = np.where(used, places, -np.inf).max(axis=1)
        wanted = ndtr(normal)[..., None]
        index = (mass < wanted).sum(axis=-1)
        inside = np.take_along_axis(
            np.broadcast_to(places, (*index.shape, places.shape[1])),
            np.minimum(index, places.shape[1] - 1)[..., None],
            -1,
        )[..., 0]
        result = np.where(index < used.sum(axis=1), inside, highest + self.step)
        return np.where(ndtr(normal) < 0.5 * self.reserve, places[:, 0] - self.step, result)

    def _chance(self, value: Array) -> Array:
        known = np.abs(self.places - value[:, None]) <= _SAME * np.abs(self.places)
        chance = np.where(known, self.chances, 0.0).sum(axis=1)
        return np.where(chance > 0, chance, self.reserve)


@dataclass(frozen=True)
class Categorical:
    """Faded counts of the distinct values of n series: Dirichlet with a reserve, as a Chinese restaurant keeps it.

    Args:
        places: Distinct values, shape (n, k).
        counts: Faded count of each, 0 of an empty slot, shape (n, k).
        strangers: Faded number of values that were unseen when they came, shape (n,).

    Sources: the reserve as in W. Ewens, The sampling theory of selectively neutral alleles, Theoretical Population
    Biology 3 (1972), its strength learned from how often a stranger came: I. Good, Biometrika 40 (1953).

    >>> known = Categorical.empty(1)
    >>> for value in (5.0,) * 98 + (7.0, 5.0):
    ...     known = known.learn(np.array([value]), 1.0, 0.0)
    >>> known.distinct(), known.step()
    (array([2]), array([2.]))
    >>> np.exp(known.predictive().log_rarity(np.array([6.0]))).round(4)  # 1.5 / 101, and the rarer 7
    array([0.0247])
    """

    places: Array
    counts: Array
    strangers: Array

    @classmethod
    def empty(cls, n: int, slots: int = SLOTS) -> Categorical:
        """Nothing seen."""
        return cls(np.zeros((n, slots)), np.zeros((n, slots)), np.zeros(n))

    def distinct(self) -> Ints:
        """Values remembered, shape (n,)."""
        number: Ints = (self.counts > _FAINT).sum(axis=1)
        return number

    def step(self) -> Array:
        """Smallest difference between two of the values; of a single one, a millionth of it; shape (n,)."""
        ordered = np.sort(np.where(self.counts > _FAINT, self.places, np.inf), axis=1)
        with np.errstate(invalid="ignore"):
            gaps = np.diff(ordered, axis=1)
        gap = np.where(np.isfinite(gaps), gaps, np.inf).min(axis=1)
        size = np.abs(np.where(self.counts > _FAINT, self.places, 0.0)).max(axis=1)
        step: Array = np.where(np.isfinite(gap), gap, np.maximum(1e-6 * size, SMALLEST))
        return step

    def learn(self, value: Array, weight: Array | float, forget: Array | float) -> Categorical:
        """The counts after one more value each.

        Args:
            value: Finite, shape (n,).
            weight: What it counts, in [0, 1].
            forget: Share of the old counts that is forgotten.
        """
        keep = np.broadcast_to(1 - np.asarray(forget), value.shape)[:, None]
        added = np.broadcast_to(np.asarray(weight, np.float64), value.shape)
        counts = self.counts * keep
        same = self._known(value)
        stranger = ~same.max(axis=1)
        slot = np.where(stranger, counts.argmin(axis=1), same.argmax(axis=1))
        here = np.arange(counts.shape[1]) == slot[:, None]
        taken = (stranger & (added > 0))[:, None] & here
        places = np.where(taken, value[:, None], self.places)
        counts = np.where(taken, 0.0, counts) + np.where(here, added[:, None], 0.0)
        first = counts.sum(axis=1) <= added
        return Categorical(places, counts, self.strangers * keep[:, 0] + np.where(stranger & ~first, added, 0.0))

    def predictive(self) -> Spikes:
        """The distribution of the next value."""
        live = np.where(self.counts > _FAINT, self.counts, 0.0)
        total = live.sum(axis=1)
        reserve = np.where(total > 0, (0.5 + self.strangers) / (1.0 + total), 1.0)
        reserve = np.minimum(reserve, 1.0)
        chances = live / np.where(total > 0, total, 1.0)[:, None] * (1 - reserve)[:, None]
        return Spikes(self.places, chances, reserve, self.step())

    def _known(self, value: Array) -> Flags:
        near = np.abs(self.places - value[:, None]) <= _SAME * np.abs(self.places)
        return (self.counts > _FAINT) & near
