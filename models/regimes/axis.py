"""The axis on which regimes differ by a shift: asinh(value / unit), proportional for large values, linear near 0."""

from __future__ import annotations

import numpy as np

from models.arrays import Array


def place(value: Array, unit: Array) -> Array:
    """Where values lie on the axis.

    >>> place(np.array([0.0, 1.0, 1000.0]), np.array([1.0, 1.0, 1.0])).round(3)
    array([0.   , 0.881, 7.601])
    """
    result: Array = np.arcsinh(value / unit)
    return result
