"""The axis on which regimes differ by a shift: asinh(value / unit), proportional for large values, linear near 0.

The unit is 0 where no value but 0 has been seen: then a value is its own unit.
"""

from __future__ import annotations

import math

from models.kernels import kernel
from models.numbers.hyperbolic import asinh, sinh


@kernel
def place(value: float, unit: float) -> float:
    """Where a value lies on the axis.

    >>> round(place(1.0, 1.0), 3), round(place(1000.0, 1.0), 3)
    (0.881, 7.601)
    """
    return asinh(value / (unit or 1.0))


@kernel
def value(place: float, unit: float) -> float:
    """Inverse of `place`.

    >>> round(value(place(1000.0, 1.0), 1.0), 6)
    1000.0
    """
    return sinh(place) * (unit or 1.0)


@kernel
def finest(resolution: float, value: float, unit: float) -> float:
    """What a small difference of values is on the axis, at a value.

    >>> finest(0.1, 0.0, 1.0), round(finest(0.1, 100.0, 1.0), 4)
    (0.1, 0.001)
    """
    unit = unit or 1.0
    return resolution / math.sqrt(value * value + unit * unit)
