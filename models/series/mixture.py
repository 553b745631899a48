"""Bayesian mixture of experts: whom to believe, and what follows for a value."""

from __future__ import annotations

import math
from typing import NamedTuple

from models.families.student_t import StudentT, cdf, deviation, expand, log_density, pace, reach, square
from models.kernels import kernel, within
from models.numbers.arrays import LARGEST
from models.numbers.normal import beyond, density, log_beyond

EXPERTS = 3
LEAST_WEIGHT = 1e-6
"""No expert's weight falls below about this, so that each can come back."""

_LOG_LEAST_WEIGHT = math.log(LEAST_WEIGHT)
_LN2 = math.log(2.0)

_STEP = 1.0
"""A single value moves the balance between two experts by at most this log likelihood ratio: no outlier decides."""

_REMOTE = 1e-280

_NEAR = 0.1
"""Standard deviations from which on a step of Halley's method is the last, except on a plateau; see `_HIT`."""

_HIT = 0.005
"""Standard deviations that are no error. On a plateau between two parts, where a step says little, it takes these."""

_FLAT = 0.25
"""A plateau is where the tail grows by less than this share of what it would about a single centre."""

_ROUNDS = 60
"""Of such steps, or of bisection, at most: enough for parts whose scales differ by any factor."""

_LEAST_OUT = 1e-9
"""Standard deviations: where nearly all mass lies beyond a value, nothing is divided by less."""

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
    a, b, c = a - total, b - total, c - total
    if min(a, b, c) >= _LOG_LEAST_WEIGHT:
        return a, b, c
    a, b, c = max(a, _LOG_LEAST_WEIGHT), max(b, _LOG_LEAST_WEIGHT), max(c, _LOG_LEAST_WEIGHT)
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
        far = beyond(square(mixture.parts[k], away))
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
def middle(mixture: Mixture) -> float:
    """The experts' centres, weighted."""
    place = 0.0
    for k in range(EXPERTS):
        place += mixture.weights[k] * expand(mixture.parts[k], mixture.parts[k].location)
    return place


@kernel
def ends(mixture: Mixture, z: float) -> tuple[float, float]:
    """The values below and above which lies the mass that a standard normal has beyond z > 0.

    >>> one = (StudentT(0.0, 1.0, 50.0, 0.0), StudentT(10.0, 1.0, 50.0, 0.0))
    >>> two = mixture_of(one[0], one[1], one[0], (math.log(0.25), math.log(0.5), math.log(0.25)))
    >>> round(mass_up_to(two, 5.0), 6), [round(value, 1) for value in ends(two, 3.29)]
    (0.5, [-3.3, 13.3])
    """
    a, b, c = mixture.parts
    reaches = reach(a, z), reach(b, z), reach(c, z)
    aim, centre = math.sqrt(-2 * log_beyond(z * z)), middle(mixture)
    return -_end(mixture, reaches, aim, -centre, -1.0), _end(mixture, reaches, aim, centre, 1.0)


@kernel
def _end(mixture: Mixture, reaches: Three, aim: float, centre: float, side: float) -> float:
    """One of the ends, outwards like the `middle`: a root by Halley's method, between the ends of the parts."""
    low, high, place = LARGEST, -LARGEST, 0.0
    for k in range(EXPERTS):
        part = mixture.parts[k]
        alone = within(side * expand(part, part.location + side * reaches[k]), -LARGEST, LARGEST)
        low, high = min(low, alone), max(high, alone)
        place += mixture.weights[k] * alone
    place = within(place, low, high)
    for _ in range(_ROUNDS):
        miss, slope, bend = _miss(mixture, place, side, aim)
        if miss < 0:
            low = place
        else:
            high = place
        step = miss / max(slope, _REMOTE)
        better = place - step / within(1.0 - 0.5 * step * bend / max(slope, _REMOTE), 0.5, 2.0)
        if abs(miss) < _NEAR and slope * (place - centre) > _FLAT * aim:
            return within(better, low, high)
        if abs(miss) < _HIT:
            return place
        place = better if low < better < high else 0.5 * (low + high)
    return place


@kernel
def _miss(mixture: Mixture, outwards: float, side: float, aim: float) -> tuple[float, float, float]:
    """By how much a value lies too far out, in about standard deviations; its first and its second derivative.

    The derivatives are those of the exact normal, whose tail is `beyond` to 0.3 %, and the second takes each part for
    a normal near the value: they only guide the search.
    """
    mass, dense, falling = 0.0, 0.0, 0.0
    for k in range(EXPERTS):
        part, weight = mixture.parts[k], mixture.weights[k]
        away = side * deviation(part, side * outwards)
        squared = square(part, away)
        far = beyond(squared)
        mass += weight * (1.0 - far if away < 0 else far)
        speed = pace(part, outwards, away, squared)
        thin = weight * density(squared) * speed
        dense += thin
        falling += thin * speed * math.copysign(math.sqrt(squared), away)
    mass = within(mass, 1e-300, 1.0)
    out = math.sqrt(-2 * math.log(mass))
    hazard, far_out = dense / mass, max(out, _LEAST_OUT)
    slope = hazard / far_out
    return out - aim, slope, (hazard * hazard - falling / mass - slope * slope) / far_out
