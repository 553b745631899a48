"""Records to partials, and partials merged: one group-by for all keys and panes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import polars as pl

from engine.aggregates import AnyAggregate, Count, Quantile, Rate
from engine.aggregates.base import TIME
from engine.aggregates.quantile import BUCKET_SPAN, to_bucket
from engine.packing import packed
from engine.state import Tables

PANE = "__pane"
SUMS, SAMPLES = "sums", "samples"
_GROUP = "__group"


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
    lifts: dict[str, pl.Expr] = Count().lift()
    for aggregate in aggregates:
        if not isinstance(aggregate, Quantile | Rate):
            lifts |= aggregate.lift()
    by = [*key, PANE]
    group = packed(records, by, room=BUCKET_SPAN)
    tables = {SUMS: grouped(records, by, lifts, group)}
    for column in sorted({a.column for a in aggregates if isinstance(a, Quantile)}):
        tables[sketch_name(column)] = _sketch(records, by, column, group)
    for rate in aggregates:
        if isinstance(rate, Rate):
            samples = rate.counters(records).select(*by, TIME, rate.column)
            if samples.height:
                tables[SAMPLES] = samples
    return tables


def grouped(
    rows: pl.DataFrame, by: Sequence[str], columns: Mapping[str, pl.Expr], group: pl.Series | None = None
) -> pl.DataFrame:
    """Aggregates rows by some columns, through one packed integer where the columns allow it."""
    group = packed(rows, by) if group is None else group
    named = [expr.alias(name) for name, expr in columns.items()]
    if group is None:
        return rows.group_by(by).agg(named)
    firsts = [pl.col(column).first() for column in by]
    return rows.with_columns(group.alias(_GROUP)).group_by(_GROUP).agg(*firsts, *named).drop(_GROUP)


def _sketch(records: pl.DataFrame, by: list[str], column: str, group: pl.Series | None) -> pl.DataFrame:
    buckets = pl.Series("bucket", to_bucket(records[column].to_numpy()))
    if group is not None:
        group = group * BUCKET_SPAN + (buckets + BUCKET_SPAN // 2).cast(pl.UInt64)
    rows = records.select(by).with_columns(buckets)
    return grouped(rows, [*by, "bucket"], {"n": pl.len().cast(pl.Int64)}, group)
