"""Student's t, on the axis of the values or on a logarithm-like one: the predictive of normals of unknown variance."""

from __future__ import annotations

import math
from typing import NamedTuple

from models.kernels import kernel, within
from models.numbers.arrays import LARGEST
from models.numbers.hyperbolic import asinh, sinh
from models.numbers.normal import beyond

_LOG_2PI = math.log(2 * math.pi)
_LARGE = 8.0
"""Half of the degrees of freedom from which on a series is exact to 1e-10."""

_LARGEST_PLACE = 345.0
"""sinh of places beyond this is more than 1e149."""


class StudentT(NamedTuple):
    """Student's t of a value x, or of asinh(x / unit).

    Tail areas go through Wallace's normalising transformation, z = (8ν+1)/(8ν+3) · √(ν ln(1 + t²/ν)): its inverse
    is closed, it does not underflow, and it costs a tenth of the incomplete beta function. Against the exact
    tail area, -ln p is wrong by less than 6 % for ν ≥ 3 and p ≥ 1e-6 (test). The density is exact.

    The axis asinh(x / unit) is logarithmic far from zero, linear near it, and takes any sign.

    Args:
        location: Centre, on the axis.
        scale: Scale there, above 0.
        dof: Degrees of freedom ν.
        unit: Magnitude at which the axis turns from linear to logarithmic; 0: it is that of the values.

    Sources: D. L. Wallace, Bounds on normal approximations to Student's and the chi-square distributions, Annals of
    Mathematical Statistics 30 (1959); J. B. Burbidge, L. Magee, A. L. Robb, Alternative transformations to handle
    extreme values, JASA 83 (1988).
    """

    location: float
    scale: float
    dof: float
    unit: float


@kernel
def compress(t: StudentT, value: float) -> float:
    """The place of a value on the axis."""
    return asinh(value / t.unit) if t.unit > 0 else value


@kernel
def expand(t: StudentT, place: float) -> float:
    """Inverse of `compress`, never beyond 1e149 units or so."""
    return t.unit * sinh(within(place, -_LARGEST_PLACE, _LARGEST_PLACE)) if t.unit > 0 else place


@kernel
def deviation(t: StudentT, value: float) -> float:
    """By how many scales a value lies above the centre, on the axis."""
    return within((compress(t, value) - t.location) / t.scale, -LARGEST, LARGEST)


@kernel
def stretch(t: StudentT) -> float:
    """((8ν+1)/(8ν+3))² ν of Wallace's transformation."""
    factor = (8 * t.dof + 1) / (8 * t.dof + 3)
    return factor * factor * t.dof


@kernel
def square(t: StudentT, deviation: float) -> float:
    """z² of the standard normal with the tail area that the t has beyond a `deviation`."""
    return stretch(t) * math.log(1 + deviation * deviation / t.dof)


@kernel
def width(t: StudentT, value: float) -> float:
    """What a `deviation` of one scale is at a value, in units of the value."""
    return t.scale * (math.sqrt(value * value + t.unit * t.unit) if t.unit > 0 else 1.0)


@kernel
def pace(t: StudentT, value: float, deviation: float, square: float) -> float:
    """How fast z of the standard normal grows with a value of this `deviation`, of either sign; ``square``: z².

    >>> t = StudentT(0.0, 0.5, 10.0, 0.0)
    >>> near, far = (math.sqrt(square(t, deviation(t, value))) for value in (0.999, 1.001))
    >>> round(pace(t, 1.0, 2.0, square(t, 2.0)), 3) == round((far - near) / 0.002, 3)
    True
    """
    wide = width(t, value)
    if square == 0:
        return math.sqrt(stretch(t) / t.dof) / wide
    return stretch(t) * abs(deviation) / ((t.dof + deviation * deviation) * math.sqrt(square)) / wide


@kernel
def reach(t: StudentT, z: float) -> float:
    """How far from the centre, on the axis, a standard normal would be z away.

    >>> round(reach(StudentT(0.0, 1.0, 10.0, 0.0), 3.0902), 2)  # the 99.9th percentile; exact: 4.144
    4.15
    """
    return t.scale * math.sqrt(t.dof * (math.exp(min(z * z / stretch(t), 300.0)) - 1))


@kernel
def log_density(t: StudentT, value: float) -> float:
    """Logarithm of the density.

    >>> density = log_density(StudentT(0.0, 1.0, 10.0, 0.0), 1.0)
    >>> round(density, 5)  # exact: ln 0.230362
    -1.4681
    """
    half = 0.5 * t.dof
    away = deviation(t, value)
    return _log_norm(half) - (half + 0.5) * math.log(1 + away * away / t.dof) - math.log(width(t, value))


@kernel
def _log_norm(half: float) -> float:
    """Logarithm of the density of a standard Student-t at 0, of half of its degrees of freedom.

    ln Γ(x + 1/2) − ln Γ(x) − ln(2πx) / 2, from x = 8 on by the series of the difference [Tricomi & Erdélyi 1951], below
    it by Γ(x + 1) = x Γ(x) from there.

    >>> exact = [math.lgamma(x + 0.5) - math.lgamma(x) - 0.5 * math.log(2 * math.pi * x) for x in (0.5, 8.0, 99.0)]
    >>> max(abs(_log_norm(x) - wanted) for x, wanted in zip((0.5, 8.0, 99.0), exact)) < 1e-10
    True
    """
    ratio, x = 1.0, half
    while x < _LARGE:
        ratio *= x / (x + 0.5)
        x += 1
    one = 1 / x
    two = one * one
    below = math.log(ratio * math.sqrt(x / half)) if half < _LARGE else 0.0
    return below + one * (-1 / 8 + two * (1 / 192 + two * (-1 / 640 + two * (17 / 14336)))) - 0.5 * _LOG_2PI


@kernel
def cdf(t: StudentT, value: float) -> float:
    """P(X ≤ value).

    >>> round(cdf(StudentT(0.0, 1.0, 10.0, 0.0), 2.0), 3)  # exact: 0.963
    0.963
    """
    away = deviation(t, value)
    far = beyond(square(t, away))
    return far if away < 0 else 1.0 - far
