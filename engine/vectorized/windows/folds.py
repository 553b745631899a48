"""Lifts records to partial aggregates, merges these, and computes results, for all keys and slices at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import polars as pl

from engine.aggregates import Aggregate, AnyAggregate, Count, Rate, RowAggregate
from engine.aggregates.aggregate import COUNT, ROOM
from engine.columns.packing import grouped, packed
from engine.state.segments import Tables
from engine.vectorized.beyond import BEYOND

PARTIAL = "__partial"
SUMS, SAMPLES = "sums", "samples"


class Folds:
    """The partials of several aggregates.

    The partials are tables: `SUMS` has one row for each key and slice, with at least the count; each `RowAggregate` has
    a table of its own name; `SAMPLES` has the samples for rates, which the windows compute themselves.

    Args:
        aggregates: The aggregate of each result column.

    Attributes:
        scalars: The aggregates whose partials are columns of `SUMS`.
        rates: The rates.
        tables: For each table of rows, the aggregate that lifts and merges it.
        by_table: For each table of rows, the aggregates whose results are computed from it.
    """

    def __init__(self, aggregates: Mapping[str, AnyAggregate]) -> None:
        self.scalars = {n: a for n, a in aggregates.items() if isinstance(a, Aggregate)}
        self.rates = {n: a for n, a in aggregates.items() if isinstance(a, Rate)}
        self.tables: dict[str, RowAggregate] = {}
        self.by_table: dict[str, dict[str, RowAggregate]] = {}
        for name, a in aggregates.items():
            if isinstance(a, RowAggregate):
                self.tables.setdefault(a.table, a)
                self.by_table.setdefault(a.table, {})[name] = a
        self._lifts, self._merges = Count().lift(), Count().merge()
        for aggregate in self.scalars.values():
            self._lifts |= aggregate.lift()
            self._merges |= aggregate.merge()

    @property
    def names(self) -> list[str]:
        """The names of all partials: the columns of `SUMS` and the other tables."""
        return sorted([*self._merges, *self.tables, *self.rates])

    def lift(self, records: pl.DataFrame, key: Sequence[str]) -> Tables:
        """Makes the partials of some records.

        Args:
            records: The records with the column `PARTIAL`, which together with the key identifies the partial of each
                record: the start of its slice, or the number of its window.
            key: The key columns.
        """
        by = [*key, PARTIAL]
        group = packed(records, by, room=ROOM)
        tables = {SUMS: grouped(records, by, self._lifts, group)}
        for name, kind in self.tables.items():
            tables[name] = kind.lift(records, by, group)
        for rate in self.rates.values():
            samples = rate.counters(records).select(*by, rate.time, rate.column)
            if samples.height:
                tables[SAMPLES] = samples
        return tables

    def merge(self, name: str, rows: pl.DataFrame, by: Sequence[str]) -> pl.DataFrame:
        """Merges the rows of one table by ``by``; samples stay as they are."""
        if name == SUMS:
            return grouped(self.complete(rows, by), list(by), self._merges)
        if name not in self.tables:
            return rows
        return self.tables[name].merge(self._renamed(rows, self.tables[name].earlier, by), list(by))

    def complete(self, sums: pl.DataFrame, by: Sequence[str]) -> pl.DataFrame:
        """Adds the columns of aggregates that the job did not have when its state was written."""
        sums = self._counted(sums) if "n" in self._merges else self._renamed(sums, ("n",), by)
        return sums.with_columns(pl.lit(None).alias(name) for name in self._merges if name not in sums.columns)

    def _counted(self, sums: pl.DataFrame) -> pl.DataFrame:
        """Sums of a job with a partial ``n`` of its own, which an earlier version took for the number of records."""
        counts = [COUNT] if COUNT in sums.columns else []
        earlier = [pl.col("n").clip(1).cast(pl.Int64)] if sums.schema.get("n", pl.Null).is_integer() else []
        return sums.with_columns(pl.coalesce(*counts, *earlier, pl.lit(1, pl.Int64)).alias(COUNT))

    def _renamed(self, rows: pl.DataFrame, earlier: Sequence[str], by: Sequence[str]) -> pl.DataFrame:
        """Rows with the names of now: an earlier version left out the underscores, which keep names apart from keys."""
        old = [name for name in earlier if name in rows.columns and name not in by]
        if not old:
            return rows
        sources = {f"__{name}": [c for c in (f"__{name}", name) if c in rows.columns] for name in old}
        return rows.with_columns(pl.coalesce(columns).alias(now) for now, columns in sources.items()).drop(old)

    def finished(self) -> list[pl.Expr]:
        """Expressions of the results that are computed from one row of `SUMS`, and of `BEYOND`."""
        results = [aggregate.finish().alias(name) for name, aggregate in self.scalars.items()]
        beyond = {
            name: overflow for name, aggregate in self.scalars.items() if (overflow := aggregate.beyond()) is not None
        }
        named = (
            pl.coalesce([pl.when(overflow).then(pl.lit(name)) for name, overflow in beyond.items()]) if beyond else None
        )
        return results if named is None else [*results, named.alias(BEYOND)]

    def with_tables(self, results: pl.DataFrame, tables: Tables, by: Sequence[str]) -> pl.DataFrame:
        """Adds the results that are computed from tables of rows; null where there is no table."""
        for name, kind in self.tables.items():
            aggregates = self.by_table[name]
            if name in tables:
                read = kind.finish(self._renamed(tables[name], kind.earlier, by), list(by), aggregates)
                results = results.join(read, on=list(by), how="left", maintain_order="left", nulls_equal=True)
            else:
                results = results.with_columns(pl.lit(None).alias(column) for column in aggregates)
        return results
