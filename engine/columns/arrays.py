"""Types of NumPy columns that operators and their state share."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Values = npt.NDArray[Any]
Columns = dict[str, Values]
"""Columns by name, all of one length."""
Default = int | float | bool | str
"""The initial value of a state column, which also gives its type."""


def objects(values: list[Any]) -> Values:
    """An array of Python objects, one for each value, even where all values are lists of one length."""
    array: Values = np.empty(len(values), object)
    array[:] = values
    return array
