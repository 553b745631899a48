"""Tails of the standard normal in few operations, a tenth of the cost of the exact functions."""

from __future__ import annotations

import math

from models.kernels import kernel

_SHARE = 0.34354
"""Of the square root in the bound; it makes the largest relative error, 0.33 %, as small as can be."""

_SLOPE, _CURVE = math.sqrt(2 * math.pi) * (1 - _SHARE), 2 * math.pi * _SHARE**2
LOG_HALF = math.log(0.5)


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
def z_beyond(log_mass: float) -> float:
    """The z ≥ 0 beyond which lies a mass of at most a half, of its logarithm; wrong by at most 0.00045.

    Source: M. Abramowitz, I. Stegun, Handbook of Mathematical Functions (1964), 26.2.23.

    >>> round(z_beyond(-0.6931472), 2), round(z_beyond(-6.9077553), 2)  # of ln 0.5 and ln 0.001; exact: 0, 3.09
    (0.0, 3.09)
    """
    t = math.sqrt(-2 * min(log_mass, LOG_HALF))
    over = (0.010328 * t + 0.802853) * t + 2.515517
    under = ((0.001308 * t + 0.189269) * t + 1.432788) * t + 1.0
    return max(t - over / under, 0.0)
