"""What words say of a series' past: how long it is known, its extremes, runs of values. No score needs it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from models.evidence.repeats import NEVER
from models.kernels import kernel
from models.numbers.arrays import Columns
from models.records import Record


class Lived(NamedTuple):
    """The past of a series up to and with a value.

    Args:
        run: Values in a row, this one included, above what was typical, as a negative number below it.
        run_since: When the first of them came.
        ordinary: Whether all of them lay within their bands.
        same: Whether the value is exactly the one before.
        same_since: When the first of the values in a row came that were exactly this one.
    """

    run: float
    run_since: float
    ordinary: bool
    same: bool
    same_since: int


def new_state(n: int) -> Columns:
    """The columns for n series of which nothing is known: ``same_since``, and in few columns what changes together.

    ``extent``: when the first value came, and the lowest and the highest so far; ``run``: the first three of `Lived`.
    """
    extent = np.zeros((n, 3))
    extent[:, 0] = NEVER
    return {"extent": extent, "run": np.zeros((n, 3)), "same_since": np.full(n, NEVER, np.int64)}


@kernel
def lived_through(
    past: Record, time: int, before: int, value: float, lower: float, typical: float, upper: float, same: bool
) -> Lived:
    """The past with a value.

    Args:
        past: The columns.
        time: When, epoch milliseconds.
        before: When the value before it came.
        value: The value.
        lower: Lower end of what was expected.
        typical: Median of it.
        upper: Upper end of it.
        same: Whether the value is exactly the one before.

    >>> from models.records import record_of
    >>> past, before = record_of(new_state(1)), -1
    >>> for time, value in enumerate([5.0, 4.0, 3.0]):
    ...     lived = lived_through(past, time, before, value, 0.0, 4.5, 9.0, False)
    ...     learn_past(past, lived, time, value)
    ...     before = time
    >>> lived.run, past.extent
    (-2.0, array([0., 3., 5.]))
    """
    side = 1.0 if value > typical else -1.0
    goes_on = past.run[0] * side > 0 and value != typical
    inside = lower <= value <= upper
    same_since = time
    if same:
        same_since = before if past.same_since == NEVER else past.same_since
    return Lived(
        (past.run[0] if goes_on else 0.0) + side,
        past.run[1] if goes_on else float(time),
        inside and (not goes_on or past.run[2] > 0),
        same,
        same_since,
    )


@kernel
def learn_past(past: Record, lived: Lived, time: int, value: float) -> None:
    """Adds the value of which `lived_through` spoke."""
    past.run[0], past.run[1], past.run[2] = lived.run, lived.run_since, 1.0 if lived.ordinary else 0.0
    if past.extent[0] == NEVER:
        past.extent[0], past.extent[1], past.extent[2] = time, value, value
    past.extent[1], past.extent[2] = min(past.extent[1], value), max(past.extent[2], value)
    past.same_since = lived.same_since if lived.same else NEVER
