"""What an aggregate is: how records become a partial, partials merge, and a partial becomes a result.

The partial of an `Aggregate` is a few named columns of the row (key, slice), worked out by Polars expressions. Those
that need the same partial (`Count`, `Mean`, `Std`) name its columns alike and so share them. The partial of a
`RowAggregate` is any number of rows (key, slice, ...) in a table of its own: a sketch, a histogram, counts. Both kinds
are vectorised over all keys and slices at once, and merging is associative and commutative.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, Self

import polars as pl

TIME = "time"
"""The time column of the records, epoch milliseconds, unless a job says otherwise."""

ROOM = 1 << 17
"""A `RowAggregate` may multiply the packed numbers of its groups by this, to make room for the number of a row."""


class Aggregate(ABC):
    """An aggregate whose partial is one row of columns."""

    def timed(self, column: str) -> Self:
        """The same where a job's time is in a column; an aggregate that asks for the time overrides it."""
        return self

    @abstractmethod
    def lift(self) -> dict[str, pl.Expr]:
        """Columns of the partial, as aggregations over a group of records."""

    @abstractmethod
    def merge(self) -> dict[str, pl.Expr]:
        """Expressions that merge a group of partial results into one, column by column."""

    @abstractmethod
    def finish(self) -> pl.Expr:
        """The result, from the columns of one partial."""


class RowAggregate(ABC):
    """An aggregate whose partial is rows of a table.

    All aggregates of one `table` share its rows: they lift and merge alike, and differ in what they read off them.
    A row without a value counts for nothing; the result of a window without values is null.
    """

    column: str

    def timed(self, column: str) -> Self:
        """The same where a job's time is in a column; an aggregate that asks for the time overrides it."""
        return self

    @property
    @abstractmethod
    def table(self) -> str:
        """Name of the table in the state."""

    @abstractmethod
    def lift(self, records: pl.DataFrame, by: list[str], group: pl.Series | None) -> pl.DataFrame:
        """Rows of the partials of some records.

        Args:
            records: Columns ``by`` and those of the record type.
            by: The columns that name one partial; they come first in the rows.
            group: One number for each partial, `ROOM` times of which still fit into 64 bits; ``None`` if not packable.
        """

    @abstractmethod
    def merge(self, rows: pl.DataFrame, by: list[str]) -> pl.DataFrame:
        """The rows of several partials of each ``by`` as those of one."""

    @abstractmethod
    def finish(self, rows: pl.DataFrame, by: list[str], wanted: Mapping[str, Any]) -> pl.DataFrame:
        """Reads results off partials.

        Args:
            rows: As lifted; those of several partials of one ``by`` need not be merged.
            by: The columns that name one partial.
            wanted: Name of each result column, and its aggregate; all have the same `table`.

        Returns:
            A row for each ``by``, with a column for each name.
        """


def present(records: pl.DataFrame, column: str, group: pl.Series | None) -> tuple[pl.DataFrame, pl.Series | None]:
    """The records with a value in a column, and their group numbers."""
    if not records[column].null_count():
        return records, group
    known = records[column].is_not_null()
    return records.filter(known), None if group is None else group.filter(known)
