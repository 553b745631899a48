"""A user's own aggregate, given by expressions. Where these do not suffice, subclass `Aggregate` or `RowAggregate`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from engine.aggregates.aggregate import Aggregate


@dataclass(frozen=True, eq=False)
class CustomAggregate(Aggregate):
    """A mergeable aggregate given by its expressions.

    Merging must be associative and commutative: partials of one window are merged in any order and grouping.

    Args:
        lifted: Columns of the partial, each an aggregation over a group of records. Choose names that nobody else uses.
        merged: The same columns, each an aggregation over a group of partials.
        finished: The result, from the columns of one partial.
        exact: Function that computes the result of a window in plain Python from its records, in event-time order; the
            reference uses it.

    The geometric mean of positive values:

    >>> logs = pl.col("value").log()
    >>> mean = CustomAggregate(
    ...     {"geo.logs": logs.sum(), "geo.n": pl.len()},
    ...     {"geo.logs": pl.col("geo.logs").sum(), "geo.n": pl.col("geo.n").sum()},
    ...     (pl.col("geo.logs") / pl.col("geo.n")).exp(),
    ... )
    >>> partial = pl.DataFrame({"value": [2.0, 8.0]}).select(**mean.lift())
    >>> round(partial.select(mean.finish()).item(), 9)
    4.0
    """

    lifted: Mapping[str, pl.Expr]
    merged: Mapping[str, pl.Expr]
    finished: pl.Expr
    exact: Callable[[Sequence[dict[str, object]]], object] | None = None

    def lift(self) -> dict[str, pl.Expr]:
        return dict(self.lifted)

    def merge(self) -> dict[str, pl.Expr]:
        return dict(self.merged)

    def finish(self) -> pl.Expr:
        return self.finished

    def of_all(self, records: Sequence[dict[str, object]]) -> object:
        """The result of a single partial of all records; the reference uses it if there is no ``exact``."""
        partial = pl.DataFrame(list(records), infer_schema_length=None).select(**self.lift())
        return partial.select(self.finished).item()
