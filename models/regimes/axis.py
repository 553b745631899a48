"""The axis on which regimes differ by a shift: asinh(value / unit), proportional for large values, linear near 0."""

from __future__ import annotations

import numpy as np

from models.arrays import LARGEST, Array, clamp

_END = 690.0
"""asinh of magnitudes beyond this is not told apart: sinh of it is still a float."""


def place(value: Array, unit: Array) -> Array:
    """Where values lie on the axis.

    >>> place(np.array([0.0, 1.0, 1000.0]), np.array([1.0, 1.0, 1.0])).round(3)
    array([0.   , 0.881, 7.601])
    """
    result: Array = np.arcsinh(value / unit)
    return result


def moved(value: Array, shift: Array, unit: Array) -> Array:
    """Values shifted on the axis, and back in their own units.

    >>> moved(np.array([100.0, -100.0]), np.log([2.0, 2.0]), np.array([1.0, 1.0])).round(1)
    array([200., -50.])
    """
    there = clamp(place(value, unit) + shift, -_END, _END)
    return clamp(np.sinh(there) * unit, -LARGEST, LARGEST)
