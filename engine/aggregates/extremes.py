"""Smallest and largest value of a column; null if there are no values."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from engine.aggregates.aggregate import Aggregate


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
