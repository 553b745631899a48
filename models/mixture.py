"""Bayesian mixture of experts: whom to believe, and what follows for a value."""

from __future__ import annotations

import math
from typing import NamedTuple

from models.arrays import LARGEST
from models.families.student_t import StudentT, around, cdf, deviation, log_density, square
from models.kernels import kernel, within
from models.normal import LOG_HALF, log_beyond, z_beyond

EXPERTS = 3
LEAST_WEIGHT = 1e-6
"""No expert's weight falls below about this, so that each can come back."""

_LOG_LEAST_WEIGHT = math.log(LEAST_WEIGHT)
_LOG_EXPERTS = math.log(EXPERTS)
_LN2 = math.log(2.0)

_STEP = 1.0
"""A single value moves the balance between two experts by at most this log likelihood ratio: no outlier decides."""

_REMOTE = 1e-280

Three = tuple[float, float, float]


class Mixture(NamedTuple):
    """The experts' predictives, weighted.

    Args:
        parts: What each expert predicts.
        log_weights: Log of the weight of each, normalised.
        weights: Their exponentials.
    """

    parts: tuple[StudentT, StudentT, StudentT]
    log_weights: Three
    weights: Three


@kernel
def mixture_of(level: StudentT, log_level: StudentT, hour: StudentT, log_weights: Three) -> Mixture:
    """The mixture of three predictives."""
    a, b, c = log_weights
    return Mixture((level, log_level, hour), log_weights, (math.exp(a), math.exp(b), math.exp(c)))


@kernel
def _log_sum(a: float, b: float, c: float) -> float:
    """Logarithm of the sum of three exponentials, without overflow."""
    top = max(a, b, c)
    return top + math.log(math.exp(a - top) + math.exp(b - top) + math.exp(c - top))


@kernel
def reweigh(log_weights: Three, densities: Three, forget: float) -> Three:
    """The experts' log weights after a value: the old ones fade to equality, the likelihood of the value is added.

    Args:
        log_weights: Normalised.
        densities: Logs of the densities that each gave the value.
        forget: Share of the old log weights that is forgotten.

    Source: A. E. Raftery, M. Kárný, P. Ettler, Online prediction under model uncertainty via dynamic model averaging,
    Technometrics 52 (2010).

    >>> half, sixth = math.log(1 / 2), math.log(1 / 4)
    >>> after = reweigh((half, sixth, sixth), (math.log(0.6), math.log(0.4), math.log(0.4)), 0.0)
    >>> [round(math.exp(weight), 3) for weight in after]  # 0.3, 0.1 and 0.1, over their sum
    [0.6, 0.2, 0.2]
    """
    best = max(densities[0], densities[1], densities[2])
    a = (1 - forget) * log_weights[0] + max(densities[0] - best, -_STEP)
    b = (1 - forget) * log_weights[1] + max(densities[1] - best, -_STEP)
    c = (1 - forget) * log_weights[2] + max(densities[2] - best, -_STEP)
    total = _log_sum(a, b, c)
    a, b, c = max(a - total, _LOG_LEAST_WEIGHT), max(b - total, _LOG_LEAST_WEIGHT), max(c - total, _LOG_LEAST_WEIGHT)
    total = _log_sum(a, b, c)
    return a - total, b - total, c - total


@kernel
def densities(mixture: Mixture, value: float) -> Three:
    """Logs of the densities that the experts give a value."""
    a, b, c = mixture.parts
    return log_density(a, value), log_density(b, value), log_density(c, value)


@kernel
def surprise(mixture: Mixture, value: float) -> float:
    """-ln of the two-sided tail probability of a value, at least 0."""
    below = above = 0.0
    for k in range(EXPERTS):
        away = deviation(mixture.parts[k], value)
        far = math.exp(log_beyond(square(mixture.parts[k], away)))
        near = 1.0 - far
        below += mixture.weights[k] * (far if away < 0 else near)
        above += mixture.weights[k] * (near if away < 0 else far)
    least = min(below, above)
    if least < _REMOTE:
        return max(_remote(mixture, value) - _LN2, 0.0)
    return max(-math.log(least) - _LN2, 0.0)


@kernel
def _remote(mixture: Mixture, value: float) -> float:
    """-ln of a tail probability that is no float: all parts have the value on one side."""
    a, b, c = mixture.parts
    u, v, w = mixture.log_weights
    return -_log_sum(
        u + log_beyond(square(a, deviation(a, value))),
        v + log_beyond(square(b, deviation(b, value))),
        w + log_beyond(square(c, deviation(c, value))),
    )


@kernel
def mass_up_to(mixture: Mixture, value: float) -> float:
    """P(X ≤ value)."""
    mass = 0.0
    for k in range(EXPERTS):
        mass += mixture.weights[k] * cdf(mixture.parts[k], value)
    return mass


@kernel
def log_mass(mixture: Mixture, value: float, width: float) -> float:
    """Log of the probability of an interval round the value: to compare with that of an atom."""
    mass = mass_up_to(mixture, value + 0.5 * width) - mass_up_to(mixture, value - 0.5 * width)
    return math.log(max(mass, 1e-300))


@kernel
def end(mixture: Mixture, z: float, side: float) -> float:
    """The value above (``side`` 1.0) or below (-1.0) which lies the mass that a standard normal has beyond z > 0.

    A root by secants, measured outwards, between bounds that are close in the tails: a mixture of k parts of weights w
    has the mass p beyond a value no further out than the outermost of the parts' ends of mass p / (k w), no further in
    than the outermost of those of p / w, and nowhere outside of those of p.

    >>> one = (StudentT(0.0, 1.0, 50.0, 0.0), StudentT(10.0, 1.0, 50.0, 0.0))
    >>> two = mixture_of(one[0], one[1], one[0], (math.log(0.25), math.log(0.5), math.log(0.25)))
    >>> round(mass_up_to(two, 5.0), 6), round(end(two, 3.29, -1.0), 1), round(end(two, 3.29, 1.0), 1)
    (0.5, -3.3, 13.3)
    """
    wanted = log_beyond(z * z)
    inside = outside = furthest = -LARGEST
    nearest = LARGEST
    for k in range(EXPERTS):
        part, own = mixture.parts[k], wanted - mixture.log_weights[k]
        if own < LOG_HALF:  # of a part with a mass of less than that in all nothing follows
            inside = max(inside, _outwards(part, z_beyond(own), side))
        if own - _LOG_EXPERTS < 0:
            outside = max(outside, _outwards(part, z_beyond(own - _LOG_EXPERTS), side))
        alone = _outwards(part, z, side)
        nearest, furthest = min(nearest, alone), max(furthest, alone)
    low = max(inside, nearest)
    high = max(low, min(outside, furthest))
    aim = math.sqrt(-2 * wanted)
    miss_low, miss_high = _miss(mixture, low, side, aim), _miss(mixture, high, side, aim)
    middle = _secant(low, high, miss_low, miss_high)
    miss = _miss(mixture, middle, side, aim)
    if miss < 0:
        low, miss_low = middle, miss
    else:
        high, miss_high = middle, miss
    return side * _secant(low, high, miss_low, miss_high)


@kernel
def _outwards(part: StudentT, z: float, side: float) -> float:
    return within(side * around(part, z, side), -LARGEST, LARGEST)


@kernel
def _miss(mixture: Mixture, outwards: float, side: float, aim: float) -> float:
    """By how much a value lies too far out, in about standard deviations."""
    mass = 0.0
    for k in range(EXPERTS):
        away = side * deviation(mixture.parts[k], side * outwards)
        far = math.exp(log_beyond(square(mixture.parts[k], away)))
        mass += mixture.weights[k] * (1.0 - far if away < 0 else far)
    return math.sqrt(-2 * math.log(within(mass, 1e-300, 1.0))) - aim


@kernel
def _secant(low: float, high: float, miss_low: float, miss_high: float) -> float:
    share = within(-miss_low / max(miss_high - miss_low, 1e-12), 0.0, 1.0)
    return low * (1 - share) + high * share
