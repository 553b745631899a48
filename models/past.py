"""What words say of a series' past: how long it is known, its extremes, runs of values. No score needs it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from models.arrays import Array, Columns, Flags, Ints, Rows
from models.evidence.repeats import NEVER


class Lived(NamedTuple):
    """The past of n series up to and with a value each.

    Args:
        extent: When the first value came, and the lowest and the highest of the values before this one, shape (n, 3).
        first: Whether this is the first one, shape (n,).
        run: Values in a row, this one included, above what was typical, as a negative number below it, shape (n,).
        run_since: When the first of them came, shape (n,).
        ordinary: Whether all of them lay within their bands, shape (n,).
        same: Whether the value is exactly the one before, shape (n,).
        same_since: When the first of the values in a row came that were exactly this one, shape (n,).
    """

    extent: Array
    first: Flags
    run: Array
    run_since: Array
    ordinary: Flags
    same: Flags
    same_since: Ints


class Past:
    """Keeps it, in few columns: ``extent`` and ``run`` as in `Lived`, and ``same_since``; holds nothing itself.

    >>> past, row = Past(), np.array([0])
    >>> state, before = past.new_state(1), np.array([-1])
    >>> for minute, value in enumerate([5.0, 4.0, 3.0]):
    ...     time, given = np.array([minute * 60_000]), np.array([value])
    ...     view = Rows(state, row, "")
    ...     lived = past.read(view, time, before, given, (given * 0, given * 0 + 4.5, given * 0 + 9), given < 0)
    ...     past.learn(view, lived, time, given)
    ...     before = time
    >>> lived.run, lived.extent
    (array([-2.]), array([[0., 4., 5.]]))
    """

    def new_state(self, n: int) -> Columns:
        """The columns for n series of which nothing is known."""
        extent = np.zeros((n, 3))
        extent[:, 0] = NEVER
        return {"extent": extent, "run": np.zeros((n, 3)), "same_since": np.full(n, NEVER, np.int64)}

    def read(
        self, state: Rows, time: Ints, before: Array | Ints, value: Array, band: tuple[Array, Array, Array], same: Flags
    ) -> Lived:
        """The past with a value each.

        Args:
            state: The columns.
            time: When, epoch milliseconds, shape (n,).
            before: When the value before it came, shape (n,).
            value: The value, shape (n,).
            band: Lower end, typical and upper end of what was expected, each of shape (n,).
            same: Whether the value is exactly the one before, shape (n,).
        """
        lower, typical, upper = band
        extent, (run, since, ordinary) = state["extent"], state["run"].T
        side = np.where(value > typical, 1.0, -1.0)
        goes_on = (run * side > 0) & (value != typical)
        equal = state["same_since"].astype(np.int64)
        return Lived(
            extent=extent,
            first=extent[:, 0] == NEVER,
            run=np.where(goes_on, run, 0.0) + side,
            run_since=np.where(goes_on, since, time),
            ordinary=(lower <= value) & (value <= upper) & (~goes_on | (ordinary > 0)),
            same=same,
            same_since=np.where(same, np.where(equal == NEVER, before.astype(np.int64), equal), time),
        )

    @staticmethod
    def context(lived: Lived, seen: Array, time: Ints) -> dict[str, Array]:
        """What is said of it beside a verdict, by name; each of shape (n,).

        ``values`` that came before this one and ``watched``, the milliseconds since the first of them; the ``lowest``
        and ``highest`` of them; ``run``, values in a row, this one included, above what was typical (as a negative
        number: below), ``run_for``, milliseconds since the first of these, and whether all of them were ``ordinary``:
        within their bands; ``same_for``, milliseconds since the first value in a row that was exactly this one.
        """
        born, low, high = lived.extent.T
        return {
            "values": seen,
            "watched": np.where(lived.first, 0.0, time - born),
            "lowest": np.where(lived.first, np.nan, low),
            "highest": np.where(lived.first, np.nan, high),
            "run": lived.run,
            "run_for": time - lived.run_since,
            "ordinary": lived.ordinary.astype(np.float64),
            "same_for": (time - lived.same_since).astype(np.float64),
        }

    def learn(self, state: Rows, lived: Lived, time: Ints, value: Array) -> None:
        """Adds the values of which `read` spoke."""
        state["run"] = np.stack([lived.run, lived.run_since, lived.ordinary], axis=1)
        born, low, high = lived.extent.T
        beyond = lived.first | (value < low) | (value > high)
        if beyond.any():
            low, high = np.where(lived.first, value, low), np.where(lived.first, value, high)
            born = np.where(lived.first, time, born)
            state["extent"] = np.stack([born, np.minimum(low, value), np.maximum(high, value)], axis=1)
        equal = state["same_since"]
        if (lived.same | (equal != NEVER)).any():
            state["same_since"] = np.where(lived.same, lived.same_since, NEVER)
