"""An aggregate of one's own, from expressions; one that needs more is a subclass of `Aggregate` or `RowAggregate`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from engine.aggregates.aggregate import Aggregate


@dataclass(frozen=True, eq=False)
class CustomAggregate(Aggregate):
    """A mergeable aggregate given by its parts.

    Merging must be associative and commutative: partials of one window are merged in any order and grouping.

    Args:
        lifted: Columns of the partial, each an aggregation over a group of records; name them so that they are yours.
        merged: The same columns, each an aggregation over a group of partials.
        finished: The result, from the columns of one partial.
        exact: The result in plain Python, of one window's records in event-time order.

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
        """The result of one partial of all records, for the reference of an aggregate without ``exact``."""
        partial = pl.DataFrame(list(records), infer_schema_length=None).select(**self.lift())
        return partial.select(self.finished).item()
