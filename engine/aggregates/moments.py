"""Count, sum, mean, variance, standard deviation.

Mean and variance come from the partial (count, mean, M2), merged after Chan, Golub and LeVeque (1979).
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from engine.aggregates.base import Aggregate, numbers


@dataclass(frozen=True)
class Count(Aggregate):
    """Number of records."""

    def lift(self) -> dict[str, pl.Expr]:
        return {"n": pl.len().cast(pl.Int64)}

    def merge(self) -> dict[str, pl.Expr]:
        return {"n": pl.col("n").sum()}

    def finish(self) -> pl.Expr:
        return pl.col("n")

    def reference(self, records: Sequence[dict[str, object]]) -> object:
        return len(records)


@dataclass(frozen=True)
class Sum(Aggregate):
    """Sum of a column."""

    column: str

    def lift(self) -> dict[str, pl.Expr]:
        return {f"{self.column}.sum": pl.col(self.column).sum()}

    def merge(self) -> dict[str, pl.Expr]:
        return {f"{self.column}.sum": pl.col(f"{self.column}.sum").sum()}

    def finish(self) -> pl.Expr:
        return pl.col(f"{self.column}.sum")

    def reference(self, records: Sequence[dict[str, object]]) -> object:
        return math.fsum(numbers(records, self.column))


@dataclass(frozen=True)
class Mean(Aggregate):
    """Arithmetic mean of a column."""

    column: str

    def lift(self) -> dict[str, pl.Expr]:
        return Count().lift() | {f"{self.column}.mean": pl.col(self.column).mean()}

    def merge(self) -> dict[str, pl.Expr]:
        return Count().merge() | {f"{self.column}.mean": _merged_mean(self.column)}

    def finish(self) -> pl.Expr:
        return pl.col(f"{self.column}.mean")

    def reference(self, records: Sequence[dict[str, object]]) -> object:
        return math.fsum(numbers(records, self.column)) / len(records)


@dataclass(frozen=True)
class Std(Aggregate):
    """Sample standard deviation of a column; 0 of a single record."""

    column: str

    def lift(self) -> dict[str, pl.Expr]:
        m2 = pl.col(self.column).var(ddof=0) * pl.len()
        return Mean(self.column).lift() | {f"{self.column}.m2": m2}

    def merge(self) -> dict[str, pl.Expr]:
        between = (pl.col("n") * (pl.col(f"{self.column}.mean") - _merged_mean(self.column)).pow(2)).sum()
        return Mean(self.column).merge() | {f"{self.column}.m2": pl.col(f"{self.column}.m2").sum() + between}

    def finish(self) -> pl.Expr:
        variance = pl.col(f"{self.column}.m2") / (pl.col("n") - 1)
        return pl.when(pl.col("n") > 1).then(variance.sqrt()).otherwise(0.0)

    def reference(self, records: Sequence[dict[str, object]]) -> object:
        return statistics.stdev(numbers(records, self.column)) if len(records) > 1 else 0.0


@dataclass(frozen=True)
class Variance(Std):
    """Sample variance of a column; 0 of a single record."""

    def finish(self) -> pl.Expr:
        return pl.when(pl.col("n") > 1).then(pl.col(f"{self.column}.m2") / (pl.col("n") - 1)).otherwise(0.0)

    def reference(self, records: Sequence[dict[str, object]]) -> object:
        return statistics.variance(numbers(records, self.column)) if len(records) > 1 else 0.0


def _merged_mean(column: str) -> pl.Expr:
    mean = pl.col(f"{column}.mean")
    known = pl.col("n") * mean.is_not_null()  # a state from before the job had this aggregate holds no mean
    return ((mean * known).sum() / known.sum()).fill_nan(None)
