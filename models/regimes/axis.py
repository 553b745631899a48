"""The axis on which regimes differ by a shift: asinh(value / unit), proportional for large values, linear near 0."""

from __future__ import annotations

import numpy as np

from models.arrays import Array


def place(value: Array, unit: Array) -> Array:
    """Where values lie on the axis.

    Args:
        value: Finite, shape (n,).
        unit: Above 0; or 0 where no value but 0 has been seen; shape (n,).

    >>> place(np.array([0.0, 1.0, 1000.0]), np.array([1.0, 1.0, 1.0])).round(3)
    array([0.   , 0.881, 7.601])
    """
    result: Array = np.arcsinh(value / np.where(unit > 0, unit, 1.0))
    return result


def value(place: Array, unit: Array) -> Array:
    """Inverse of `place`.

    >>> one = np.ones(1)
    >>> value(place(1000 * one, one), one).round(6)
    array([1000.])
    """
    result: Array = np.sinh(place) * np.where(unit > 0, unit, 1.0)
    return result


def finest(resolution: Array, value: Array, unit: Array) -> Array:
    """What a small difference of values is on the axis, at these values.

    >>> finest(np.array([0.1, 0.1]), np.array([0.0, 100.0]), np.array([1.0, 1.0])).round(4)
    array([0.1  , 0.001])
    """
    result: Array = resolution / np.hypot(value, np.where(unit > 0, unit, 1.0))
    return result
