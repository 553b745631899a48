"""Records to partials: one group-by for all keys and panes, on one packed integer where the keys allow it."""

from __future__ import annotations

from collections.abc import Iterable

import polars as pl

from engine.aggregates import AnyAggregate, Count, Quantile, Rate
from engine.aggregates.base import TIME
from engine.aggregates.quantile import BUCKET_SPAN, to_bucket
from engine.state import Tables

PANE = "__pane"
GROUP = "__group"
SUMS, SAMPLES = "sums", "samples"
_LARGEST_PACKED = 2**62


def sketch_name(column: str) -> str:
    """Name of the table with the sketches of a column."""
    return f"sketch:{column}"


def lift(records: pl.DataFrame, key: list[str], aggregates: Iterable[AnyAggregate]) -> Tables:
    """Partials of some records.

    Args:
        records: Columns of the record type and `PANE`, first instant of each record's pane.
        key: Key columns.
        aggregates: What is wanted.

    Returns:
        Table `SUMS`, one row a key and pane, at least with the count; a sketch table for each column with quantiles;
        `SAMPLES` for a rate.
    """
    aggregates = list(aggregates)
    grouped, group, groups = _packed(records, [*key, PANE])
    lifts: dict[str, pl.Expr] = Count().lift()
    for aggregate in aggregates:
        if not isinstance(aggregate, Quantile | Rate):
            lifts |= aggregate.lift()
    named = [expr.alias(name) for name, expr in lifts.items()]
    carried = [] if group == [*key, PANE] else [pl.col(c).first() for c in (*key, PANE)]
    tables = {SUMS: grouped.group_by(group).agg(*carried, *named).select(*key, PANE, *lifts)}
    for column in sorted({a.column for a in aggregates if isinstance(a, Quantile)}):
        tables[sketch_name(column)] = _sketch(grouped, group, groups, key, column)
    for rate in aggregates:
        if isinstance(rate, Rate):
            tables[SAMPLES] = rate.counters(records).select(*key, PANE, TIME, rate.column)
    return tables


def _packed(records: pl.DataFrame, columns: list[str]) -> tuple[pl.DataFrame, list[str], int]:
    """Adds one integer a distinct combination of columns; where it would not fit, groups by the columns themselves."""
    packed, groups = pl.lit(0, pl.UInt64), 1
    for column in columns:
        values = records[column]
        codes = pl.col(column)
        if values.dtype == pl.Categorical:
            codes, low, high = codes.to_physical(), 0, _largest(values.to_physical())
        elif values.dtype.is_integer():
            low, high = int(values.min() or 0), _largest(values)  # type: ignore[arg-type]
        else:
            return records, columns, 0
        span = high - low + 1
        packed, groups = packed * span + (codes - low).cast(pl.UInt64), groups * span
    if groups > _LARGEST_PACKED:
        return records, columns, 0
    return records.with_columns(packed.alias(GROUP)), [GROUP], groups


def _largest(values: pl.Series) -> int:
    return int(values.max() or 0)  # type: ignore[arg-type]


def _sketch(records: pl.DataFrame, group: list[str], groups: int, key: list[str], column: str) -> pl.DataFrame:
    buckets = pl.Series("bucket", to_bucket(records[column].to_numpy()))
    with_bucket = records.with_columns(buckets)
    names = [*key, PANE, "bucket"]
    if group == [GROUP] and groups < _LARGEST_PACKED // BUCKET_SPAN:
        packed = pl.col(GROUP) * BUCKET_SPAN + (pl.col("bucket") + BUCKET_SPAN // 2).cast(pl.UInt64)
        counted = with_bucket.group_by(packed.alias(GROUP)).agg(
            *(pl.col(c).first() for c in names), pl.len().alias("n")
        )
    else:
        counted = with_bucket.group_by(names).agg(pl.len().alias("n"))
    return counted.select(*names, pl.col("n").cast(pl.Int64))
