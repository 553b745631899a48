"""Smallest and largest value of a column; null without any."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from engine.aggregates.aggregate import Aggregate, numbers


@dataclass(frozen=True)
class Min(Aggregate):
    """Smallest value of a column."""

    column: str

    def lift(self) -> dict[str, pl.Expr]:
        return {f"{self.column}.min": pl.col(self.column).min()}

    def merge(self) -> dict[str, pl.Expr]:
        return {f"{self.column}.min": pl.col(f"{self.column}.min").min()}

    def finish(self) -> pl.Expr:
        return pl.col(f"{self.column}.min")

    def reference(self, records: Sequence[dict[str, object]]) -> object:
        return min(numbers(records, self.column), default=None)


@dataclass(frozen=True)
class Max(Aggregate):
    """Largest value of a column."""

    column: str

    def lift(self) -> dict[str, pl.Expr]:
        return {f"{self.column}.max": pl.col(self.column).max()}

    def merge(self) -> dict[str, pl.Expr]:
        return {f"{self.column}.max": pl.col(f"{self.column}.max").max()}

    def finish(self) -> pl.Expr:
        return pl.col(f"{self.column}.max")

    def reference(self, records: Sequence[dict[str, object]]) -> object:
        return max(numbers(records, self.column), default=None)
