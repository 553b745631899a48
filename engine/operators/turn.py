"""A user's logic over columns, and its turns: one record or one due timer for each of several keys, as arrays."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import polars as pl

from engine.columns.arrays import Columns, Default, Ints, Values
from engine.spec.duration import END_OF_TIME
from engine.spec.expressions import of_64_bits
from engine.spec.operator import SIDE

NO_TIMER = END_OF_TIME
"""The instant of a timer that is not set."""


class Turn:
    """One turn of a `Logic`: one record, or one due timer, for each of several keys; all arrays have the same length.

    Args:
        time: Event time of each row, epoch milliseconds.
        state: State of each row's key; the logic changes the arrays or puts others in their place.
        timer: Instant of each key's timer; the logic sets it, or `NO_TIMER`.
        column: Function that returns a column of the records by name; ``None`` in a turn of timers.
        objects: Function that returns it as Python objects, see `exact`.

    Attributes:
        emitted: Rows, times and columns of each call of `emit`.
        forwarded: Rows and added columns of each call of `forward`.
    """

    def __init__(
        self,
        time: Ints,
        state: Columns,
        timer: Ints,
        column: Callable[[str], Values] | None = None,
        objects: Callable[[str], Values] | None = None,
    ) -> None:
        self.time, self.state, self.timer, self.column, self.objects = time, state, timer, column, objects
        self.emitted: list[tuple[Ints, Ints, Columns]] = []
        self.forwarded: list[tuple[Ints, Columns]] = []

    def __len__(self) -> int:
        return len(self.time)

    def __getitem__(self, name: str) -> Values:
        """A column of the records, one value for each row; numbers as numbers (null is NaN), text as objects."""
        return self._of(self.column, name)

    def exact(self, name: str) -> list[Any]:
        """A column of the records as Python values of the field's type; whole numbers are exact, null is None."""
        return list(self._of(self.objects, name))

    def _of(self, columns: Callable[[str], Values] | None, name: str) -> Values:
        if columns is None:
            raise KeyError(f"{name}: a timer has no record")
        return columns(name)

    def emit(
        self,
        columns: Mapping[str, Values],
        where: npt.NDArray[np.bool_] | None = None,
        at: Ints | None = None,
        to: str = "",
    ) -> None:
        """Adds a result for each row: key, event time and the columns.

        Args:
            columns: Arrays with one value for each row.
            where: Mask of the rows that have a result; ``None``: all.
            at: Event time of the results; ``None``: that of the turn.
            to: Name of a side output for the results; empty: the main output.
        """
        if to:
            columns = {**columns, SIDE: np.full(len(self), to, object)}
        rows = np.arange(len(self)) if where is None else np.flatnonzero(where)
        if len(rows):
            times = self.time if at is None else at
            self.emitted.append((rows, times[rows], {name: np.asarray(c)[rows] for name, c in columns.items()}))

    def forward(self, where: npt.NDArray[np.bool_] | None = None, **columns: Values) -> None:
        """Adds the records themselves to the results, with further columns if given."""
        if self.column is None:
            raise TypeError("forward() in a timer: it has no record")
        rows = np.arange(len(self)) if where is None else np.flatnonzero(where)
        if len(rows):
            self.forwarded.append((rows, {name: np.asarray(c)[rows] for name, c in columns.items()}))


class Logic(ABC):
    """Keyed logic over a sequence, vectorised over keys: called with the i-th records of many keys at once.

    Rows of a turn are of different keys and never see each other.
    """

    state: ClassVar[Mapping[str, Default]] = {}
    """Name and initial value of each state column: ``int``, ``float``, ``bool`` or ``str``."""

    def columns(self) -> Mapping[str, Default]:
        """The state columns. Override this if they depend on settings; the default is `state`."""
        return self.state

    def needs(self) -> Sequence[str]:
        """The columns of the records that it reads, which are checked when the job is built; by default not stated.

        Of one that is stated, records that a version without it had held back have null.
        """
        return ()

    @abstractmethod
    def on_records(self, turn: Turn) -> None:
        """Processes one record of each of several keys; for each key the calls are in event-time order."""

    def on_timers(self, turn: Turn) -> None:  # noqa: B027
        """Called for keys whose timer is due: before their next record at or after it, or at the watermark.

        The timer has been unset before the call. A timer that is set to the time of the turn or earlier fires one
        millisecond after the turn.
        """


def series(values: Values) -> pl.Series:
    """A result column by the rule of expressions: numbers of 64 bits; NaN and infinity are no value."""
    column = pl.Series("", values.tolist(), strict=False) if values.dtype == object else pl.Series("", values)
    return of_64_bits(column.to_frame()).to_series()
