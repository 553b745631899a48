"""Count, sum, mean, variance, standard deviation.

Mean and variance come from the partial (number of values, mean, M2), merged after Chan, Golub and LeVeque (1979). All
but `Count` skip records without a value; their result is null if there is no value.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from engine.aggregates.aggregate import COUNT, Aggregate
from engine.aggregates.exact_sums import ExactSum


@dataclass(frozen=True)
class Count(Aggregate):
    """Number of records."""

    def lift(self) -> dict[str, pl.Expr]:
        return {COUNT: pl.len().cast(pl.Int64)}

    def merge(self) -> dict[str, pl.Expr]:
        return {COUNT: pl.col(COUNT).sum()}

    def finish(self) -> pl.Expr:
        return pl.col(COUNT)


@dataclass(frozen=True)
class Sum(Aggregate):
    """Sum of the values of a column; one that leaves the 64 bits of its type cannot be computed."""

    column: str

    def lift(self) -> dict[str, pl.Expr]:
        value = pl.col(self.column)
        return ExactSum(self.column).lift(value, value.cast(pl.Float64))

    def merge(self) -> dict[str, pl.Expr]:
        return ExactSum(self.column).merge()

    def finish(self) -> pl.Expr:
        return ExactSum(self.column).finish()

    def beyond(self) -> pl.Expr:
        return ExactSum(self.column).beyond()


@dataclass(frozen=True)
class Mean(Aggregate):
    """Arithmetic mean of the values of a column."""

    column: str

    def lift(self) -> dict[str, pl.Expr]:
        value = pl.col(self.column)
        n = value.count().cast(pl.Int64)
        return Count().lift() | {f"{self.column}.n": n, f"{self.column}.mean": value.mean()}

    def merge(self) -> dict[str, pl.Expr]:
        n, mean = _values(self.column).sum(), _merged_mean(self.column)
        return Count().merge() | {f"{self.column}.n": n, f"{self.column}.mean": mean}

    def finish(self) -> pl.Expr:
        return pl.col(f"{self.column}.mean")

    def beyond(self) -> pl.Expr | None:
        return pl.col(f"{self.column}.mean").is_infinite()


@dataclass(frozen=True)
class Variance(Aggregate):
    """Sample variance of the values of a column.

    Args:
        column: The column.
        of_one: The variance of a single value: 0, or ``None``, as in SQL.
    """

    column: str
    of_one: float | None = 0.0

    def lift(self) -> dict[str, pl.Expr]:
        value = pl.col(self.column)
        return Mean(self.column).lift() | {f"{self.column}.m2": value.var(ddof=0) * value.count()}

    def merge(self) -> dict[str, pl.Expr]:
        apart = pl.col(f"{self.column}.mean") - _merged_mean(self.column)
        between = (_values(self.column) * apart.pow(2)).sum()
        return Mean(self.column).merge() | {f"{self.column}.m2": pl.col(f"{self.column}.m2").sum() + between}

    def finish(self) -> pl.Expr:
        n = _values(self.column)
        variance = pl.col(f"{self.column}.m2") / (n - 1)
        return pl.when(n > 1).then(variance).when(n == 1).then(pl.lit(self.of_one, pl.Float64))

    def beyond(self) -> pl.Expr | None:
        return ~pl.col(f"{self.column}.m2").is_finite()


@dataclass(frozen=True)
class Std(Variance):
    """Sample standard deviation of the values of a column; see `Variance` for the arguments."""

    def finish(self) -> pl.Expr:
        return super().finish().sqrt()


def _values(column: str) -> pl.Expr:
    """The number of values in a partial. A partial of an older version has only the number of its records."""
    older = pl.when(pl.col(f"{column}.mean").is_not_null()).then(pl.col(COUNT)).otherwise(0)
    return pl.coalesce(f"{column}.n", older)


def _merged_mean(column: str) -> pl.Expr:
    n = _values(column)
    return ((pl.col(f"{column}.mean") * n).sum() / n.sum()).fill_nan(None)
