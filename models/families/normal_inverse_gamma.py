"""Normal with unknown mean and variance, conjugate, whose sufficient statistics fade exponentially."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from models.arrays import Array, Flags
from models.families.student_t import StudentT


@dataclass(frozen=True)
class Prior:
    """Normal-inverse-gamma prior: mean ~ N(mean, variance / strength), variance ~ InvGamma(shape, shape · variance).

    Args:
        mean: Prior mean, shape (n,).
        strength: Observations that the prior mean is worth, κ₀ ≥ 0.
        shape: Half the observations that the prior variance is worth, a₀ > 0.
        variance: Prior variance, above 0.
    """

    mean: Array
    strength: Array | float
    shape: Array | float
    variance: Array

    def where(self, known: Flags, other: Prior) -> Prior:
        """This prior where it is known, elsewhere another one.

        Args:
            known: Shape (n,).
            other: The other prior.
        """
        pairs = ((getattr(self, f.name), getattr(other, f.name)) for f in fields(self))
        return Prior(*(np.where(known, own, others) for own, others in pairs))


@dataclass(frozen=True)
class NormalInverseGamma:
    """Sufficient statistics of n series, and what follows from them.

    Args:
        count: Effective observations (weights, faded), shape (n,).
        mean: Their mean, shape (n,).
        squares: Their sum of squared deviations from the mean, shape (n,).

    Source: K. Murphy, Conjugate Bayesian analysis of the Gaussian distribution (2007), section 6; the fading as in
    M. West, J. Harrison, Bayesian Forecasting and Dynamic Models (1997), chapter 10.

    >>> empty = NormalInverseGamma(np.zeros(1), np.zeros(1), np.zeros(1))
    >>> seen = empty.learn(np.array([2.0]), 1.0, 0.0).learn(np.array([4.0]), 1.0, 0.0)
    >>> seen
    NormalInverseGamma(count=array([2.]), mean=array([3.]), squares=array([2.]))
    >>> t = seen.predictive(Prior(np.array([0.0]), 1.0, 1.0, np.array([1.0])))
    >>> t.location, t.dof, (t.scale**2).round(4)  # by hand: κ = 3, a = 2, b = 1 + 1 + 3 = 5; 5/2 · 4/3
    (array([2.]), array([4.]), array([3.3333]))
    """

    count: Array
    mean: Array
    squares: Array

    def learn(self, value: Array, weight: Array | float, forget: Array | float) -> NormalInverseGamma:
        """The statistics after one more value each: the old ones fade by ``forget``, the value counts ``weight``.

        Args:
            value: Values, finite, shape (n,).
            weight: What each counts, in [0, 1].
            forget: Share of the old statistics that is forgotten, in [0, 1).
        """
        faded = self.count * (1 - forget)
        count = faded + weight
        gain = weight / np.maximum(count, 1e-12)
        delta = value - self.mean
        mean = self.mean + gain * delta
        return NormalInverseGamma(count, mean, self.squares * (1 - forget) + faded * gain * (delta * delta))

    def predictive(self, prior: Prior, floor: Array | float = 0.0) -> StudentT:
        """Student-t of the next value.

        Args:
            prior: What is believed before the first value.
            floor: Smallest scale, e.g. the resolution of the measurement.
        """
        strength = prior.strength + self.count
        off = self.mean - prior.mean
        share = self.count / np.maximum(strength, 1e-12)
        shape = prior.shape + 0.5 * self.count
        rate = prior.shape * prior.variance + 0.5 * self.squares + 0.5 * prior.strength * share * (off * off)
        scale = np.sqrt(rate / shape * (1 + 1 / np.maximum(strength, 0.5)))
        return StudentT(prior.mean + share * off, np.maximum(scale, floor), 2 * shape)
