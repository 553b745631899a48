"""Normal with unknown mean and variance, conjugate, whose sufficient statistics fade exponentially."""

from __future__ import annotations

import math
from typing import NamedTuple

from models.families.student_t import StudentT
from models.kernels import kernel


class Prior(NamedTuple):
    """Normal-inverse-gamma prior: mean ~ N(mean, variance / strength), variance ~ InvGamma(shape, shape · variance).

    Args:
        mean: Prior mean.
        strength: Observations that the prior mean is worth, κ₀ ≥ 0.
        shape: Half the observations that the prior variance is worth, a₀ > 0.
        variance: Prior variance, above 0; where it is 0, nothing is believed.
    """

    mean: float
    strength: float
    shape: float
    variance: float


class Statistics(NamedTuple):
    """Sufficient statistics of a series.

    Args:
        observations: How many, in effect (weights, faded).
        mean: Their mean.
        squares: Their sum of squared deviations from the mean.

    Source: K. Murphy, Conjugate Bayesian analysis of the Gaussian distribution (2007), section 6; the fading as in
    M. West, J. Harrison, Bayesian Forecasting and Dynamic Models (1997), chapter 10.
    """

    observations: float
    mean: float
    squares: float


@kernel
def learn(statistics: Statistics, value: float, weight: float, forget: float) -> Statistics:
    """The statistics after one more value: the old ones fade by ``forget``, the value counts ``weight``.

    >>> learn(learn(Statistics(0.0, 0.0, 0.0), 2.0, 1.0, 0.0), 4.0, 1.0, 0.0)
    Statistics(observations=2.0, mean=3.0, squares=2.0)
    """
    faded = statistics.observations * (1 - forget)
    count = faded + weight
    gain = weight / max(count, 1e-12)
    delta = value - statistics.mean
    squares = statistics.squares * (1 - forget) + faded * gain * (delta * delta)
    return Statistics(count, statistics.mean + gain * delta, squares)


@kernel
def predictive(statistics: Statistics, prior: Prior, floor: float, unit: float) -> StudentT:
    """Student-t of the next value.

    Args:
        statistics: Those of the values so far.
        prior: What is believed before the first value.
        floor: Smallest scale, e.g. the resolution of the measurement.
        unit: Of the axis, see `StudentT`.

    >>> t = predictive(Statistics(2.0, 3.0, 2.0), Prior(0.0, 1.0, 1.0, 1.0), 0.0, 0.0)
    >>> t.location, t.dof, round(t.scale**2, 4)  # by hand: κ = 3, a = 2, b = 1 + 1 + 3 = 5; 5/2 · 4/3
    (2.0, 4.0, 3.3333)
    """
    strength = prior.strength + statistics.observations
    off = statistics.mean - prior.mean
    share = statistics.observations / max(strength, 1e-12)
    shape = prior.shape + 0.5 * statistics.observations
    rate = prior.shape * prior.variance + 0.5 * statistics.squares + 0.5 * prior.strength * share * (off * off)
    scale = math.sqrt(rate / shape * (1 + 1 / max(strength, 0.5)))
    return StudentT(prior.mean + share * off, max(scale, floor), 2 * shape, unit)
