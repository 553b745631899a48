"""Tails of the standard normal in few operations, a tenth of the cost of the exact functions."""

from __future__ import annotations

import math

from models.kernels import kernel

_SHARE = 0.34354
"""Of the square root in the bound; it makes the largest relative error, 0.33 %, as small as can be."""

_AT_0 = 1 / math.sqrt(2 * math.pi)

_SLOPE, _CURVE = math.sqrt(2 * math.pi) * (1 - _SHARE), 2 * math.pi * _SHARE**2


@kernel
def log_beyond(square: float) -> float:
    """Logarithm of the mass beyond z ≥ 0, of z²; exact at 0, elsewhere wrong by at most 0.0033.

    Source: P. O. Börjesson, C.-E. W. Sundberg, Simple approximations of the error function Q(x) for communications
    applications, IEEE Transactions on Communications 27 (1979), with a constant that keeps Q(0) = 1/2.

    >>> [round(log_beyond(square), 1) for square in (0.0, 9.0, 36.0)]  # exact: -0.7, -6.6, -20.7
    [-0.7, -6.6, -20.7]
    """
    return -0.5 * square - math.log(_SLOPE * math.sqrt(square) + math.sqrt(4.0 + _CURVE * square))


@kernel
def beyond(square: float) -> float:
    """The mass beyond z ≥ 0, of z²: the exponential of `log_beyond`.

    >>> [round(beyond(square), 5) for square in (0.0, 9.0)]  # exact: 0.5, 0.00135
    [0.5, 0.00135]
    """
    return math.exp(-0.5 * square) / (_SLOPE * math.sqrt(square) + math.sqrt(4.0 + _CURVE * square))


@kernel
def density(square: float) -> float:
    """The density at z, of z².

    >>> [round(density(square), 4) for square in (0.0, 1.0, 9.0)]
    [0.3989, 0.242, 0.0044]
    """
    return math.exp(-0.5 * square) * _AT_0
