"""Records to partials, and partials merged: one group-by for all keys and panes."""

from __future__ import annotations

from collections.abc import Iterable

import polars as pl

from engine.aggregates import Aggregate, AnyAggregate, Count, Rate, RowAggregate
from engine.aggregates.base import ROOM, TIME
from engine.packing import grouped, packed
from engine.state import Tables

PANE = "__pane"
SUMS, SAMPLES = "sums", "samples"


def lift(records: pl.DataFrame, key: list[str], aggregates: Iterable[AnyAggregate]) -> Tables:
    """Partials of some records.

    Args:
        records: Columns of the record type and `PANE`, first instant of each record's pane.
        key: Key columns.
        aggregates: What is wanted.

    Returns:
        Table `SUMS`, one row a key and pane, at least with the count; the tables of `RowAggregate` by their
        names; `SAMPLES` for a rate.
    """
    aggregates = list(aggregates)
    lifts: dict[str, pl.Expr] = Count().lift()
    for aggregate in aggregates:
        if isinstance(aggregate, Aggregate):
            lifts |= aggregate.lift()
    by = [*key, PANE]
    group = packed(records, by, room=ROOM)
    tables = {SUMS: grouped(records, by, lifts, group)}
    for name, kind in tables_of(aggregates).items():
        tables[name] = kind.lift(records, by, group)
    for rate in aggregates:
        if isinstance(rate, Rate):
            samples = rate.counters(records).select(*by, TIME, rate.column)
            if samples.height:
                tables[SAMPLES] = samples
    return tables


def tables_of(aggregates: Iterable[AnyAggregate]) -> dict[str, RowAggregate]:
    """The tables of rows that some aggregates need, and for each the one that lifts and merges it."""
    tables: dict[str, RowAggregate] = {}
    for aggregate in aggregates:
        if isinstance(aggregate, RowAggregate):
            tables.setdefault(aggregate.table, aggregate)
    return tables
