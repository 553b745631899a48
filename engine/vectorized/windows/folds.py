"""Records to partials of aggregates, merged, and to results: for all keys and slices at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import polars as pl

from engine.aggregates import Aggregate, AnyAggregate, Count, Rate, RowAggregate
from engine.aggregates.aggregate import ROOM
from engine.columns.packing import grouped, packed
from engine.state.segments import Tables

PARTIAL = "__partial"
SUMS, SAMPLES = "sums", "samples"


class Folds:
    """The partials of some aggregates.

    They are tables: `SUMS`, one row a key and slice, at least with the count; those of `RowAggregate` by their names;
    `SAMPLES` for rates, which each kind of window works out in its own way.

    Args:
        aggregates: What is wanted, by the name of its result column.

    Attributes:
        scalars: The aggregates whose partials are columns of `SUMS`.
        rates: The rates.
        tables: The tables of rows, and for each the one that lifts and merges it.
        wanted: For each of them, which results are read off it.
    """

    def __init__(self, aggregates: Mapping[str, AnyAggregate]) -> None:
        self.scalars = {n: a for n, a in aggregates.items() if isinstance(a, Aggregate)}
        self.rates = {n: a for n, a in aggregates.items() if isinstance(a, Rate)}
        self.tables: dict[str, RowAggregate] = {}
        self.wanted: dict[str, dict[str, RowAggregate]] = {}
        for name, a in aggregates.items():
            if isinstance(a, RowAggregate):
                self.tables.setdefault(a.table, a)
                self.wanted.setdefault(a.table, {})[name] = a
        self._lifts, self._merges = Count().lift(), Count().merge()
        for aggregate in self.scalars.values():
            self._lifts |= aggregate.lift()
            self._merges |= aggregate.merge()

    def lift(self, records: pl.DataFrame, key: Sequence[str]) -> Tables:
        """Partials of some records.

        Args:
            records: Columns of the record type and `PARTIAL`, which with the key says into which partial a record goes:
                the start of its slice, or the number of its window.
            key: Key columns.
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
        """One table's rows of several partials of each ``by`` as those of one; samples stay as they are."""
        if name == SUMS:
            return grouped(self.complete(rows), list(by), self._merges)
        return self.tables[name].merge(rows, list(by)) if name in self.tables else rows

    def complete(self, sums: pl.DataFrame) -> pl.DataFrame:
        """Adds the columns of aggregates that the job did not have yet when its state was written."""
        return sums.with_columns(pl.lit(None).alias(name) for name in self._merges if name not in sums.columns)

    def finished(self) -> list[pl.Expr]:
        """The results that are read off one row of `SUMS`."""
        return [aggregate.finish().alias(name) for name, aggregate in self.scalars.items()]

    def with_tables(self, results: pl.DataFrame, tables: Tables, by: Sequence[str]) -> pl.DataFrame:
        """Results with the columns that are read off tables of rows; null where there is no table."""
        for name, kind in self.tables.items():
            wanted = self.wanted[name]
            if name in tables:
                read = kind.finish(tables[name], list(by), wanted)
                results = results.join(read, on=list(by), how="left", maintain_order="left", nulls_equal=True)
            else:
                results = results.with_columns(pl.lit(None).alias(column) for column in wanted)
        return results


def tables_by_name(parts: Sequence[Tables]) -> Iterator[tuple[str, list[pl.DataFrame]]]:
    """The tables of each name in several sets of tables."""
    for name in dict.fromkeys(name for part in parts for name in part):
        yield name, [part[name] for part in parts if name in part]
