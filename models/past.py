"""What words say of a series' past: how long it is known, its extremes, runs of values. No score needs it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from models.arrays import Array, Columns, Flags, Ints, Rows
from models.evidence.repeats import NEVER


class Lived(NamedTuple):
    """The past of n series up to and with a value each; all of shape (n,).

    Args:
        born: When the first value came, epoch milliseconds.
        low: Lowest of the values before this one; NaN if there were none.
        high: Highest of them.
        run: Values in a row, this one included, on this side of what was typical.
        run_since: When the first of them came.
        above: Whether that side is the upper one.
        ordinary: Whether all of them lay within their bands.
        same_since: When the first of the values in a row came that were exactly this one.
    """

    born: Ints
    low: Array
    high: Array
    run: Ints
    run_since: Ints
    above: Flags
    ordinary: Flags
    same_since: Ints


class Past:
    """Keeps it, as columns; holds nothing itself.

    >>> past, row = Past(), np.array([0])
    >>> state = past.new_state(1)
    >>> for minute, value in enumerate([5.0, 4.0, 3.0]):
    ...     time, given = np.array([minute * 60_000]), np.array([value])
    ...     view = Rows(state, row, "")
    ...     lived = past.read(view, time, given, (given * 0, given * 0 + 4.5, given * 0 + 9), given < 0)
    ...     past.learn(view, lived, given)
    >>> lived.run, lived.low, lived.high
    (array([2]), array([4.]), array([5.]))
    """

    def new_state(self, n: int) -> Columns:
        """The columns for n series of which nothing is known."""
        columns: Columns = {name: np.full(n, NEVER, np.int64) for name in ("born", "run_since", "same_since")}
        columns |= {"low": np.zeros(n), "high": np.zeros(n), "run": np.zeros(n, np.int32)}
        return columns | {name: np.zeros(n, np.bool_) for name in ("above", "ordinary")}

    def read(self, state: Rows, time: Ints, value: Array, band: tuple[Array, Array, Array], same: Flags) -> Lived:
        """The past with a value each.

        Args:
            state: The columns.
            time: When, epoch milliseconds, shape (n,).
            value: The value, shape (n,).
            band: Lower end, typical and upper end of what was expected, each of shape (n,).
            same: Whether the value is exactly the one before, shape (n,).
        """
        lower, typical, upper = band
        born = state["born"].astype(np.int64)
        first, above = born == NEVER, value > typical
        goes_on = ~first & (state["above"] == above) & (value != typical)
        inside = (lower <= value) & (value <= upper)
        return Lived(
            born=np.where(first, time, born),
            low=np.where(first, np.nan, state["low"]),
            high=np.where(first, np.nan, state["high"]),
            run=np.where(goes_on, state["run"], 0).astype(np.int64) + 1,
            run_since=np.where(goes_on, state["run_since"], time).astype(np.int64),
            above=above,
            ordinary=inside & (~goes_on | (state["ordinary"] > 0)),
            same_since=np.where(same & ~first, state["same_since"], time).astype(np.int64),
        )

    @staticmethod
    def context(lived: Lived, seen: Array, time: Ints, told: Flags) -> dict[str, Array]:
        """What is said of it beside a verdict, by name, NaN where nothing is ``told``; each of shape (n,).

        ``values`` that came before this one and ``watched``, the milliseconds since the first of them; the ``lowest``
        and ``highest`` of them; ``run``, values in a row, this one included, above what was typical (as a negative
        number: below), ``run_for``, milliseconds since the first of these, and whether all of them were ``ordinary``:
        within their bands; ``same_for``, milliseconds since the first value in a row that was exactly this one.
        """
        every = {
            "values": seen,
            "watched": time - lived.born,
            "lowest": lived.low,
            "highest": lived.high,
            "run": np.where(lived.above, lived.run, -lived.run),
            "run_for": time - lived.run_since,
            "ordinary": lived.ordinary,
            "same_for": time - lived.same_since,
        }
        return {name: np.where(told, value, np.nan) for name, value in every.items()}

    def learn(self, state: Rows, lived: Lived, value: Array) -> None:
        """Adds the values of which `read` spoke."""
        state["born"], state["low"], state["high"] = lived.born, np.fmin(lived.low, value), np.fmax(lived.high, value)
        state["run"], state["run_since"] = np.minimum(lived.run, 2**31 - 1), lived.run_since
        state["above"], state["ordinary"], state["same_since"] = lived.above, lived.ordinary, lived.same_since
