"""The hyperbolic sine and its inverse by exponential and logarithm: callers that ask for the same share one result."""

from __future__ import annotations

import math

from models.kernels import kernel
from models.numbers.arrays import LARGEST


@kernel
def sinh(x: float) -> float:
    """The hyperbolic sine, to 1e-16 where |x| < 1, elsewhere to the last bits.

    >>> [round(sinh(x) / math.sinh(x), 12) for x in (-300.0, -3.0, 0.1, 1.0)]
    [1.0, 1.0, 1.0, 1.0]
    """
    power = math.exp(abs(x))
    return math.copysign(0.5 * (power - 1 / power), x)


@kernel
def asinh(x: float) -> float:
    """Its inverse, to the same.

    >>> [round(asinh(x) - math.asinh(x), 12) + 0.0 for x in (-1e200, -3.0, 0.0, 1e-9, 0.5, 1e10)]
    [0.0, 0.0, 0.0, 0.0, 0.0, 0.0]
    """
    size = abs(x)
    root = math.sqrt(size * size + 1) if size < LARGEST else size
    return math.copysign(math.log(size + root), x)
