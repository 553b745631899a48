"""The values with the earliest and latest time, and the value that is the same in all records of a key.

Records without a value are skipped; the result is null if there is no value.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Self

import polars as pl

from engine.aggregates.aggregate import TIME, Aggregate
from engine.spec.duration import NEVER


@dataclass(frozen=True)
class Timed(Aggregate):
    """An aggregate that depends on the time of the records.

    Args:
        column: The column.
        time: The job's time column: event, ingestion or processing time. The job sets it.
    """

    column: str
    time: str = field(default=TIME, kw_only=True, repr=False)

    def timed(self, column: str) -> Self:
        return replace(self, time=column)


@dataclass(frozen=True)
class Last(Timed):
    """The value of a column with the latest time; of several values at that time the largest."""

    def lift(self) -> dict[str, pl.Expr]:
        time, value = pl.when(pl.col(self.column).is_not_null()).then(pl.col(self.time)), pl.col(self.column)
        return {f"{self.column}.last_time": time.max(), f"{self.column}.last": value.max_by(_place(time, value))}

    def merge(self) -> dict[str, pl.Expr]:
        time, value = pl.col(f"{self.column}.last_time"), pl.col(f"{self.column}.last")
        return {f"{self.column}.last_time": time.max(), f"{self.column}.last": value.max_by(_place(time, value))}

    def finish(self) -> pl.Expr:
        return pl.col(f"{self.column}.last")


@dataclass(frozen=True)
class First(Timed):
    """The value of a column with the earliest time; of several values at that time the smallest."""

    def lift(self) -> dict[str, pl.Expr]:
        time, value = pl.when(pl.col(self.column).is_not_null()).then(pl.col(self.time)), pl.col(self.column)
        return {f"{self.column}.first_time": time.min(), f"{self.column}.first": value.min_by(_place(time, value))}

    def merge(self) -> dict[str, pl.Expr]:
        time, value = pl.col(f"{self.column}.first_time"), pl.col(f"{self.column}.first")
        return {f"{self.column}.first_time": time.min(), f"{self.column}.first": value.min_by(_place(time, value))}

    def finish(self) -> pl.Expr:
        return pl.col(f"{self.column}.first")


@dataclass(frozen=True)
class Constant(Aggregate):
    """The value of a column that is the same in all records of a key, such as the kind or unit of a metric."""

    column: str

    def lift(self) -> dict[str, pl.Expr]:
        return {self.column: pl.col(self.column).first(ignore_nulls=True)}

    def merge(self) -> dict[str, pl.Expr]:
        return self.lift()

    def finish(self) -> pl.Expr:
        return pl.col(self.column)


def _place(time: pl.Expr, value: pl.Expr) -> pl.Expr:
    """The order of values: by time, then by value.

    A partial of an older version has no time, which counts as earliest.
    """
    return pl.when(value.is_not_null()).then(pl.struct(time.fill_null(NEVER).alias("time"), value.alias("value")))
