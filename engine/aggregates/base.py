"""What an aggregate is: how records become a partial, partials merge, and a partial becomes a result.

A partial is a few named columns of the row (key, pane). Aggregates that need the same partial (`Count`, `Mean`, `Std`)
name its columns alike and so share them. Everything is a Polars expression, vectorised over all keys and panes at once.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import polars as pl

TIME = "time"
"""The event-time column of the records, epoch milliseconds."""


class Aggregate(ABC):
    """An aggregate whose partial is one row of columns."""

    @abstractmethod
    def lift(self) -> dict[str, pl.Expr]:
        """Columns of the partial, as aggregations over a group of records."""

    @abstractmethod
    def merge(self) -> dict[str, pl.Expr]:
        """The same columns, as aggregations over a group of partials."""

    @abstractmethod
    def finish(self) -> pl.Expr:
        """The result, from the columns of one partial."""

    @abstractmethod
    def reference(self, records: Sequence[dict[str, object]]) -> object:
        """The result in plain Python: the specification. ``records`` are one window's, in event-time order."""


def numbers(records: Sequence[dict[str, object]], column: str) -> list[float]:
    """The values of one column, for the reference."""
    return [float(r[column]) for r in records]  # type: ignore[arg-type]
