"""Bayesian mixture of experts: whom to believe, and what follows for a value."""

from __future__ import annotations

import numpy as np

from models.arrays import LARGEST, Array, Flags, Ints, clamp, log_sum_exp, total
from models.families.stack import Stack
from models.normal import LOG_HALF, log_beyond, z_beyond

LEAST_WEIGHT = 1e-6
"""No expert's weight falls below about this, so that each can come back."""

_STEP = 1.0
"""A single value moves the balance between two experts by at most this log likelihood ratio: no outlier decides."""

_TURNS = 1
"""Steps of the root finder after the ends are known (test: how right the probability then is)."""

_REMOTE = 1e-280
_OUTWARDS = np.array([[1.0], [-1.0]])


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


class Mixture:
    """The experts' predictives, weighted.

    Args:
        parts: What each of k experts predicts.
        log_weights: Log of the weight of each, normalised, shape (k, n).

    >>> from models.families.student_t import StudentT
    >>> one = np.ones(1)
    >>> parts = [StudentT(0 * one, one, 50 * one), StudentT(10 * one, one, 50 * one)]
    >>> two = Mixture(Stack(parts), np.log([one / 2, one / 2]))
    >>> two.cdf(np.array([[5.0]]))
    array([[0.5]])
    >>> [end.round(1) for end in two.band(3.29)]
    [array([-3.3]), array([13.3])]
    """

    def __init__(self, parts: Stack, log_weights: Array) -> None:
        self.parts, self.log_weights = parts, log_weights
        self.weights = np.exp(log_weights)

    def surprise(self, value: Array) -> Array:
        """-ln of the two-sided tail probability of the values, at least 0; shape (n,)."""
        t = self.parts.deviation(value[None])
        far, below = log_beyond(self.parts.square(t))[:, 0], t[:, 0] < 0
        mass = np.exp(far)
        up_to = total(self.weights * np.where(below, mass, 1.0 - mass))
        least = np.minimum(up_to, total(self.weights * np.where(below, 1.0 - mass, mass)))
        remote = np.flatnonzero(least < _REMOTE)
        rarity: Array = -np.log(np.maximum(least, _REMOTE))
        if len(remote):  # all parts have them on one side: there sums would underflow
            rarity[remote] = -log_sum_exp(self.log_weights[:, remote] + far[:, remote])
        return clamp(rarity - np.log(2.0), 0.0, np.inf)

    def cdf(self, value: Array) -> Array:
        """P(X ≤ value) of values of shape (m, n)."""
        t = self.parts.deviation(value)
        return self._sum(t >= 0, t)

    def log_mass(self, value: Array, width: Array) -> Array:
        """Log of the probability of an interval round the value, shape (n,): to compare with that of an atom."""
        low, high = self.cdf(np.array([value - 0.5 * width, value + 0.5 * width]))
        mass: Array = np.log(np.maximum(high - low, 1e-300))
        return mass

    def part(self, rows: Ints) -> Mixture:
        """That of some of the series."""
        return Mixture(self.parts.part(rows), self.log_weights[:, rows])

    def medians(self) -> Array:
        """Where each expert expects the value, shape (k, n)."""
        return self.parts.median()

    def band(self, z: float) -> tuple[Array, Array]:
        """The values below and above which lies the mass that a standard normal has beyond z > 0; shape (n,) each.

        A root by secants, both ends at once and measured outwards, between bounds that are close in the tails: a
        mixture of k parts of weights w has the mass p beyond a value no further out than the outermost of the parts'
        ends of mass p / (k w), no further in than the outermost of those of p / w, and nowhere outside of those of p.
        """
        wanted = float(log_beyond(np.array([z * z]))[0])
        low, high = self._bracket(z, wanted)
        misses = self._miss(np.concatenate([low, high]), wanted)
        miss_low, miss_high = misses[:2], misses[2:]
        for _ in range(_TURNS):
            middle = _secant(low, high, miss_low, miss_high)
            miss = self._miss(middle, wanted)
            under = miss < 0
            low, miss_low = np.where(under, middle, low), np.where(under, miss, miss_low)
            high, miss_high = np.where(under, high, middle), np.where(under, miss_high, miss)
        above, below = _secant(low, high, miss_low, miss_high)
        return -below, above

    def _bracket(self, z: float, wanted: float) -> tuple[Array, Array]:
        """Bounds of the ends, outwards, the upper end first: shape (2, n) each."""
        own = wanted - self.log_weights
        inner, outer = own, own - np.log(len(own))
        asked = np.stack([z_beyond(inner), z_beyond(outer), np.full_like(own, z)])
        ends = clamp(self.parts.around(asked) * _OUTWARDS, -LARGEST, LARGEST)
        # of a part with a mass of less than that in all nothing follows
        inside = np.where(inner < LOG_HALF, ends[0].swapaxes(0, 1), -LARGEST).max(axis=1)
        outside = np.where(outer < 0, ends[1].swapaxes(0, 1), -LARGEST).max(axis=1)
        low = np.maximum(inside, ends[2].min(axis=0))
        high = np.minimum(outside, ends[2].max(axis=0))
        return low, np.maximum(low, high)

    def _miss(self, outwards: Array, wanted: float) -> Array:
        """By how much values lie too far out, in about standard deviations; shape (2 j, n), upper ends first."""
        sides = np.resize(_OUTWARDS, (len(outwards), 1))
        t = self.parts.deviation(outwards * sides) * sides
        mass = self._sum(t < 0, t)
        miss: Array = np.sqrt(-2 * np.log(clamp(mass, 1e-300, 1.0))) - np.sqrt(-2 * wanted)
        return miss

    def _sum(self, most: Flags, deviation: Array) -> Array:
        """Mass on the far side of values, or where ``most`` on their other side; of (k, m, n) shape (m, n)."""
        far = np.exp(log_beyond(self.parts.square(deviation)))
        return total(np.where(most, 1.0 - far, far) * self.weights[:, None])


def _secant(low: Array, high: Array, miss_low: Array, miss_high: Array) -> Array:
    rise = np.maximum(miss_high - miss_low, 1e-12)
    share = clamp(-miss_low / rise, 0.0, 1.0)
    return low * (1 - share) + high * share
