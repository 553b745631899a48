"""Sums that are exact to 64 bits, and say when these are not enough."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl


@dataclass(frozen=True)
class ExactSum:
    """The columns of a partial that hold a sum.

    The sum of whole numbers wraps where 64 bits are not enough. The same sum as a float (``.about``) shows it: it then
    differs by a multiple of 2^64. Partials of an older version lack it.

    Args:
        name: What the names of the columns begin with.
    """

    name: str

    def lift(self, values: pl.Expr, floats: pl.Expr) -> dict[str, pl.Expr]:
        """Expressions of the columns, from the values and from the same values as floats."""
        return {f"{self.name}.sum": sum_of_values(values), f"{self.name}.about": sum_of_values(floats)}

    def merge(self) -> dict[str, pl.Expr]:
        """Expressions that merge the columns of several partials."""
        return {f"{self.name}.sum": sum_of_values(self._sum), f"{self.name}.about": sum_of_values(self.about)}

    def finish(self) -> pl.Expr:
        """Expression of the sum; null if there are no values, or if it leaves 64 bits."""
        return pl.when(self._fits).then(self._sum)

    def beyond(self) -> pl.Expr:
        """Expression: whether the sum leaves the 64 bits of a whole number or of a float."""
        return self._sum.is_not_null() & ~self._fits

    @property
    def about(self) -> pl.Expr:
        """Expression of the sum as a float."""
        return pl.coalesce(f"{self.name}.about", self._sum.cast(pl.Float64))

    @property
    def _sum(self) -> pl.Expr:
        return pl.col(f"{self.name}.sum")

    @property
    def _fits(self) -> pl.Expr:
        apart = self.about - self._sum.cast(pl.Float64)  # NaN where a sum of floats is infinite
        return apart.is_finite() & (apart.abs() < 2.0**62)


def sum_of_values(values: pl.Expr) -> pl.Expr:
    """The sum of some values; null if there are none."""
    return pl.when(values.count() > 0).then(values.sum())
