"""Partials of windows that are numbered: records in, merged with what is open, results of those that close."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import polars as pl

from engine.aggregates import Aggregate, AnyAggregate, Count, Rate, RowAggregate
from engine.errors import NewnormalError
from engine.operator.lift import PANE, SUMS, lift, tables_of
from engine.packing import grouped
from engine.state import Tables


class Partials:
    """The aggregates of a job over windows named by key and `PANE`.

    Raises:
        NewnormalError: ``AGGREGATE_UNSUPPORTED`` for a rate: it needs the sample ahead of its window.
    """

    def __init__(self, key: Sequence[str], aggregates: Mapping[str, AnyAggregate]) -> None:
        rates = [name for name, a in aggregates.items() if isinstance(a, Rate)]
        if rates:
            what = f"{', '.join(rates)}: a rate in windows that records decide"
            raise NewnormalError("AGGREGATE_UNSUPPORTED", what, "aggregate()", "aligned windows for rates")
        self.key, self.by, self.aggregates = list(key), [*key, PANE], dict(aggregates)
        self.scalars = {n: a for n, a in aggregates.items() if isinstance(a, Aggregate)}
        self.merges: dict[str, pl.Expr] = Count().merge()
        for aggregate in self.scalars.values():
            self.merges |= aggregate.merge()
        self.tables = tables_of(aggregates.values())
        self.wanted: dict[str, dict[str, RowAggregate]] = {}
        for name, a in aggregates.items():
            if isinstance(a, RowAggregate):
                self.wanted.setdefault(a.table, {})[name] = a

    def lift(self, records: pl.DataFrame) -> Tables:
        """Partials of records with a column `PANE`."""
        return lift(records, self.key, self.aggregates.values())

    def merge(self, parts: Sequence[Tables]) -> Tables:
        """Makes one set of tables of several."""
        merged = {}
        for name in dict.fromkeys(name for part in parts for name in part):
            tables = [part[name] for part in parts if name in part]
            rows = pl.concat(tables, how="diagonal_relaxed")
            if len(tables) == 1:
                merged[name] = rows
            elif name == SUMS:
                missing = [pl.lit(None).alias(c) for c in self.merges if c not in rows.columns]
                merged[name] = grouped(rows.with_columns(missing), self.by, self.merges)
            elif name in self.tables:
                merged[name] = self.tables[name].merge(rows, self.by)
        return merged

    def finish(self, tables: Tables) -> pl.DataFrame:
        """Results, one row a key and window."""
        finished = {name: aggregate.finish() for name, aggregate in self.scalars.items()}
        result = tables[SUMS].select(*self.by, **finished)
        for name, table in self.tables.items():
            if name in tables:
                result = result.join(table.finish(tables[name], self.by, self.wanted[name]), on=self.by, how="left")
        return result
