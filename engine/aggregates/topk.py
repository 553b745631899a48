"""The most frequent values of a column: counts as rows, bounded as in Misra and Gries (1982).

Such summaries merge with their error bound kept (Agarwal, Cormode, Huang, Phillips, Wei, Yi, PODS 2012).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import polars as pl

from engine.aggregates.aggregate import COUNT, RowAggregate, present
from engine.columns.packing import grouped
from engine.spec.errors import NewnormalError

_ITEM, _CUT = "__item", "__cut"


@dataclass(frozen=True)
class TopK(RowAggregate):
    """The ``k`` most frequent values of a column with their counts, most frequent first; ties are ordered as text.

    The result is exact if a window has at most ``capacity`` distinct values. Otherwise a count may be too low, by at
    most N / (capacity + 1) for N values in the window; it is never too high.

    Args:
        column: The column.
        k: Number of values in the result.
        capacity: Number of counts that are kept for each key.

    Raises:
        NewnormalError: ``AGGREGATE_INVALID``.
    """

    earlier: ClassVar[tuple[str, ...]] = ("item", "n")
    column: str
    k: int
    capacity: int = 256

    def __post_init__(self) -> None:
        if not 1 <= self.k <= self.capacity:
            what = f"k = {self.k}, capacity = {self.capacity}"
            raise NewnormalError("AGGREGATE_INVALID", what, f"TopK({self.column!r})", "1 <= k <= capacity")

    @property
    def table(self) -> str:
        return f"top:{self.column}:{self.capacity}"

    def lift(self, records: pl.DataFrame, by: list[str], group: pl.Series | None) -> pl.DataFrame:
        records, _ = present(records, self.column, group)
        rows = records.select(*by, pl.col(self.column).alias(_ITEM))
        return self._bounded(grouped(rows, [*by, _ITEM], {COUNT: pl.len().cast(pl.Int64)}), by)

    def merge(self, rows: pl.DataFrame, by: list[str]) -> pl.DataFrame:
        return self._bounded(grouped(rows, [*by, _ITEM], {COUNT: pl.col(COUNT).sum()}), by)

    def finish(self, rows: pl.DataFrame, by: list[str], aggregates: Mapping[str, TopK]) -> pl.DataFrame:
        items = self.merge(rows, by).with_columns(pl.col(_ITEM).cast(pl.String))
        items = items.sort(*by, COUNT, _ITEM, descending=[*(False for _ in by), True, False])
        ranked = pl.struct(pl.col(_ITEM).alias("key"), pl.col(COUNT).alias("value"))
        return items.group_by(by).agg(ranked.head(a.k).alias(name) for name, a in aggregates.items())

    def _bounded(self, rows: pl.DataFrame, by: list[str]) -> pl.DataFrame:
        """Reduces groups with more than ``capacity`` counts: subtracts the (capacity + 1)-th largest count from all."""
        if rows.height <= self.capacity:
            return rows
        full = rows.group_by(by).agg(pl.col(COUNT).top_k(self.capacity + 1).alias(COUNT))
        full = full.filter(pl.col(COUNT).list.len() > self.capacity)
        if not full.height:
            return rows
        cuts = full.select(*by, pl.col(COUNT).list.min().alias(_CUT))
        left = pl.col(COUNT) - pl.col(_CUT).fill_null(0)
        cut = rows.join(cuts, on=by, how="left", nulls_equal=True).with_columns(left.alias(COUNT))
        return cut.filter(pl.col(COUNT) > 0).drop(_CUT)


def as_text(value: object) -> str:
    """A value as text in the form that results have, e.g. ``1.0`` for the float 1."""
    return str(pl.Series([value]).cast(pl.String)[0])
