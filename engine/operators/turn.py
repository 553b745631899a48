"""One turn of a sequence logic: a record, or a due timer, of each of some keys, as arrays of one length."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import polars as pl

from engine.columns.arrays import Columns, Default, Ints, Values
from engine.spec.duration import END_OF_TIME
from engine.spec.operator import SIDE

NO_TIMER = END_OF_TIME
"""The instant of a timer that is not set."""


class Turn:
    """What a logic sees and changes.

    Args:
        time: Event time of each row, epoch milliseconds.
        state: State of each row's key; the logic changes the arrays or puts others in their place.
        timer: Instant of each key's timer; the logic sets it, or `NO_TIMER`.
        column: A column of the records by name; of timers there is none.

    Attributes:
        emitted: What `emit` was called with: rows, their times, columns.
        forwarded: What `forward` was called with: rows, added columns.
    """

    def __init__(self, time: Ints, state: Columns, timer: Ints, column: Callable[[str], Values] | None = None) -> None:
        self.time, self.state, self.timer, self.column = time, state, timer, column
        self.emitted: list[tuple[Ints, Ints, Columns]] = []
        self.forwarded: list[tuple[Ints, Columns]] = []

    def __len__(self) -> int:
        return len(self.time)

    def __getitem__(self, name: str) -> Values:
        """A column of the records, one value a row; numbers as numbers (null is NaN), text as objects."""
        if self.column is None:
            raise KeyError(f"{name}: a timer has no record")
        return self.column(name)

    def emit(
        self,
        columns: Mapping[str, Values],
        where: npt.NDArray[np.bool_] | None = None,
        at: Ints | None = None,
        to: str = "",
    ) -> None:
        """Adds a result a row: its key, event time and the columns.

        Args:
            columns: One value a row.
            where: Only these rows.
            at: Event time of the results; that of the turn if ``None``.
            to: Name of the side output that they go to instead of the main one.
        """
        if to:
            columns = {**columns, SIDE: np.full(len(self), to, object)}
        rows = np.arange(len(self)) if where is None else np.flatnonzero(where)
        if len(rows):
            times = self.time if at is None else at
            self.emitted.append((rows, times[rows], {name: np.asarray(c)[rows] for name, c in columns.items()}))

    def forward(self, where: npt.NDArray[np.bool_] | None = None, **columns: Values) -> None:
        """Adds each row's record itself to the results, with more columns if wanted."""
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
    """Name and first value of each state column; ``int``, ``float``, ``bool`` or ``str``."""

    def columns(self) -> Mapping[str, Default]:
        """The state columns; `state`, unless they depend on settings."""
        return self.state

    def needs(self) -> Sequence[str]:
        """The columns of the records that it reads, checked where the job is built; none where it does not tell."""
        return ()

    @abstractmethod
    def on_records(self, turn: Turn) -> None:
        """Takes in a record a key, in event-time order."""

    def on_timers(self, turn: Turn) -> None:  # noqa: B027
        """Called for keys whose timer is due: ahead of their first record at or after it, or when the watermark comes.

        The timer is unset before. One that is set to an instant not after that of the turn fires a millisecond later.
        """


def series(values: Values) -> pl.Series:
    """A result column; NaN is no value."""
    made = pl.Series(values.tolist(), strict=False) if values.dtype == object else pl.Series(values)
    return made.fill_nan(None) if made.dtype.is_float() else made
