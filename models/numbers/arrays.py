"""Columns of state, one row a series, and the element-wise arithmetic that models are written in.

Everything here works row by row: no reduction ever runs across series, so that a verdict is the same bit for bit
whichever other series are in the call.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]
Columns = dict[str, NDArray[np.generic]]
"""Named columns of state; the first axis is the series, a second one has a fixed size."""

LARGEST = 1e150
"""Magnitudes above this are judged as this: its square is still a float."""

SMALLEST = 1e-150
"""No scale is below this: its square is still a normal float."""


class Rows:
    """The columns of one component (those that start with its prefix) at some distinct rows.

    >>> state = {"level.mean": np.array([1.0, 2.0, 3.0])}
    >>> level = Rows(state, np.array([2, 0]), "level.")
    >>> level["mean"]
    array([3., 1.])
    >>> level["mean"] = np.array([30.0, 10.0])
    >>> state["level.mean"]
    array([10.,  2., 30.])
    """

    __slots__ = ("prefix", "rows", "state")

    def __init__(self, state: Columns, rows: Ints, prefix: str) -> None:
        self.state, self.rows, self.prefix = state, rows, prefix

    def __getitem__(self, name: str) -> Array:
        column = self.state[self.prefix + name]
        return column.take(self.rows, axis=0) if column.flags.c_contiguous else column[self.rows]  # type: ignore[return-value]

    def __setitem__(self, name: str, value: NDArray[np.generic]) -> None:
        self.state[self.prefix + name][self.rows] = value

    def cell(self, name: str, column: Ints) -> Array:
        """One cell of each row of a column of shape (n, width): shape (n,)."""
        return self.state[self.prefix + name][self.rows, column]  # type: ignore[return-value]

    def set_cell(self, name: str, column: Ints, value: Array) -> None:
        """Writes what `cell` reads."""
        self.state[self.prefix + name][self.rows, column] = value


def prefixed(prefix: str, columns: Columns) -> Columns:
    """The same columns under longer names.

    >>> list(prefixed("level.", {"mean": np.zeros(1)}))
    ['level.mean']
    """
    return {prefix + name: column for name, column in columns.items()}


def clamp(value: Array, low: Array | float, high: Array | float) -> Array:
    """``value`` brought into [low, high]; faster on short arrays than `numpy.clip`.

    >>> clamp(np.array([-3.0, 0.5, 3.0]), 0.0, 1.0)
    array([0. , 0.5, 1. ])
    """
    return np.minimum(np.maximum(value, low), high)


def total(parts: Array) -> Array:
    """Sum over the first axis, always from the first to the last, so that the rounding is always the same.

    >>> total(np.array([[1.0, 2.0], [10.0, 20.0]]))
    array([11., 22.])
    """
    result: Array = parts[0]
    for part in parts[1:]:
        result = result + part
    return result


def log_sum_exp(parts: Array) -> Array:
    """Logarithm of the sum over the first axis of the exponentials, without overflow.

    >>> log_sum_exp(np.array([[-1000.0], [-1000.0]])).round(4)
    array([-999.3069])
    """
    top: Array = parts.max(axis=0)
    return top + np.log(total(np.exp(parts - top)))
