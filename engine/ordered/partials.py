"""Partials of windows that are numbered: records in, merged with what is open, results of those that close."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import polars as pl

from engine.aggregates import Aggregate, AnyAggregate, Count, Quantile, Rate
from engine.aggregates.quantile import quantiles
from engine.errors import NewnormalError
from engine.operator.lift import PANE, SUMS, grouped, lift, sketch_name
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
        self.quantiles: dict[str, dict[str, float]] = {}
        for name, a in aggregates.items():
            if isinstance(a, Quantile):
                self.quantiles.setdefault(a.column, {})[name] = a.q

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
            else:
                merged[name] = grouped(rows, [*self.by, "bucket"], {"n": pl.col("n").sum()})
        return merged

    def finish(self, tables: Tables) -> pl.DataFrame:
        """Results, one row a key and window."""
        finished = {name: aggregate.finish() for name, aggregate in self.scalars.items()}
        result = tables[SUMS].select(*self.by, **finished)
        for column, named in self.quantiles.items():
            sketch = tables.get(sketch_name(column))
            if sketch is not None:
                result = result.join(quantiles(sketch, self.by, named), on=self.by, how="left")
        return result
