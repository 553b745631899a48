"""The values with the earliest and latest event time, and the value that is the same in all records of a key."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from engine.aggregates.base import TIME, Aggregate


@dataclass(frozen=True)
class Last(Aggregate):
    """Value of a column in the record with the latest event time; of several at that time the largest."""

    column: str

    def lift(self) -> dict[str, pl.Expr]:
        return {
            "last_time": pl.col(TIME).max(),
            f"{self.column}.last": pl.col(self.column).max_by(pl.struct(TIME, self.column)),
        }

    def merge(self) -> dict[str, pl.Expr]:
        last = f"{self.column}.last"
        latest = pl.struct(pl.col("last_time"), pl.col(last))
        return {"last_time": pl.col("last_time").max(), last: pl.col(last).max_by(latest)}

    def finish(self) -> pl.Expr:
        return pl.col(f"{self.column}.last")

    def reference(self, records: Sequence[dict[str, object]]) -> object:
        return max((r[TIME], r[self.column]) for r in records)[1]


@dataclass(frozen=True)
class First(Aggregate):
    """Value of a column in the record with the earliest event time; of several at that time the smallest."""

    column: str

    def lift(self) -> dict[str, pl.Expr]:
        return {
            "first_time": pl.col(TIME).min(),
            f"{self.column}.first": pl.col(self.column).min_by(pl.struct(TIME, self.column)),
        }

    def merge(self) -> dict[str, pl.Expr]:
        first = f"{self.column}.first"
        earliest = pl.struct(pl.col("first_time"), pl.col(first))
        return {"first_time": pl.col("first_time").min(), first: pl.col(first).min_by(earliest)}

    def finish(self) -> pl.Expr:
        return pl.col(f"{self.column}.first")

    def reference(self, records: Sequence[dict[str, object]]) -> object:
        return min((r[TIME], r[self.column]) for r in records)[1]


@dataclass(frozen=True)
class Constant(Aggregate):
    """A column that every record of a key carries alike, such as the kind or unit of a metric."""

    column: str

    def lift(self) -> dict[str, pl.Expr]:
        return {self.column: pl.col(self.column).first()}

    def merge(self) -> dict[str, pl.Expr]:
        return self.lift()

    def finish(self) -> pl.Expr:
        return pl.col(self.column)

    def reference(self, records: Sequence[dict[str, object]]) -> object:
        return records[0][self.column]
