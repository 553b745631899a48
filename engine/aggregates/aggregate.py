"""The base of all aggregates: records are lifted to a partial aggregate, partials merge, a partial gives a result.

There are two kinds. The partial of an `Aggregate` is some named columns of one row for each key and slice, computed by
Polars expressions. Aggregates that need the same partial (`Count`, `Mean`, `Std`) share it by using the same column
names. The partial of a `RowAggregate` is any number of rows in a table of its own: a sketch, a histogram, counts. Both
kinds are computed for all keys and slices at once. Merging must be associative and commutative.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Self

import polars as pl

TIME = "time"
"""The default name of the time column, which is in epoch milliseconds."""

COUNT = "__n"
"""Column of partials: the number of records. No key can have this name, as no column of users begins so."""

ROOM = 1 << 17
"""A `RowAggregate` may multiply the packed numbers of its groups by this, to add the number of a row to them."""


class Aggregate(ABC):
    """An aggregate whose partial is one row of columns."""

    def timed(self, column: str) -> Self:
        """This aggregate with the job's time column; overridden by aggregates that use the time."""
        return self

    @abstractmethod
    def lift(self) -> dict[str, pl.Expr]:
        """Expressions that aggregate a group of records to the columns of a partial."""

    @abstractmethod
    def merge(self) -> dict[str, pl.Expr]:
        """Expressions that merge a group of partials into one, column by column."""

    @abstractmethod
    def finish(self) -> pl.Expr:
        """Expression of the result, from the columns of one partial."""

    def beyond(self) -> pl.Expr | None:
        """Expression: whether a result exists and its type cannot hold it; ``None``: that never happens.

        Such a result becomes a dead letter (``RESULT_BEYOND``).
        """
        return None


class RowAggregate(ABC):
    """An aggregate whose partial is rows of a table.

    All aggregates with the same `table` share its rows: they lift and merge alike, and differ in their results only.
    Records without a value are skipped; the result of a window without values is null.
    """

    column: str

    earlier: ClassVar[tuple[str, ...]] = ()
    """Columns of the table that an earlier version named without the two underscores."""

    def timed(self, column: str) -> Self:
        """This aggregate with the job's time column; overridden by aggregates that use the time."""
        return self

    @property
    @abstractmethod
    def table(self) -> str:
        """Name of the table in the state."""

    @abstractmethod
    def lift(self, records: pl.DataFrame, by: list[str], group: pl.Series | None) -> pl.DataFrame:
        """Makes the rows of the partials of some records.

        Args:
            records: The records, with the columns ``by``.
            by: The columns that identify a partial; they come first in the result.
            group: For each record the number of its partial, small enough that `ROOM` times it fits into 64 bits;
                ``None`` if ``by`` cannot be packed into such numbers.
        """

    @abstractmethod
    def merge(self, rows: pl.DataFrame, by: list[str]) -> pl.DataFrame:
        """Merges the rows of all partials with the same ``by`` into those of one partial."""

    @abstractmethod
    def finish(self, rows: pl.DataFrame, by: list[str], aggregates: Mapping[str, Any]) -> pl.DataFrame:
        """Computes results from partials.

        Args:
            rows: The rows of the partials; partials with the same ``by`` need not be merged yet.
            by: The columns that identify a partial.
            aggregates: The aggregate of each result column; all have the same `table`.

        Returns:
            A row for each ``by``, with a column for each aggregate.
        """


def present(records: pl.DataFrame, column: str, group: pl.Series | None) -> tuple[pl.DataFrame, pl.Series | None]:
    """The records with a value in a column, and their group numbers."""
    if not records[column].null_count():
        return records, group
    present_rows = records[column].is_not_null()
    return records.filter(present_rows), None if group is None else group.filter(present_rows)
