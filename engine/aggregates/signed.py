"""Aggregates over the results of windows that retract: a row with ``retraction`` true is taken off again.

Only what can be taken off exactly is offered: counts, sums and means. A smallest value or a quantile does not know what
it would be without a value.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl

from engine.aggregates.aggregate import Aggregate
from engine.aggregates.moments import Count, Mean, Sum, sum_of_values
from engine.spec.errors import NewnormalError

RETRACTION = "retraction"
_WEIGHT = pl.when(pl.col(RETRACTION)).then(pl.lit(-1, pl.Int64)).otherwise(pl.lit(1, pl.Int64))


@dataclass(frozen=True)
class Signed(Aggregate):
    """A `Count`, `Sum` or `Mean` of rows of which some take back earlier ones."""

    of: Count | Sum | Mean

    @property
    def column(self) -> str | None:
        """The column that is aggregated; a count has none."""
        return getattr(self.of, "column", None)

    @property
    def _name(self) -> str:
        return f"signed.{self.column or ''}"

    def lift(self) -> dict[str, pl.Expr]:
        if self.column is None:
            return {f"{self._name}.n": _WEIGHT.sum()}
        value = pl.col(self.column)
        n = pl.when(value.is_not_null()).then(_WEIGHT).otherwise(0).sum()
        about = sum_of_values(value.cast(pl.Float64) * _WEIGHT)
        return {f"{self._name}.n": n, f"{self._name}.sum": sum_of_values(value * _WEIGHT), f"{self._name}.about": about}

    def merge(self) -> dict[str, pl.Expr]:
        merged = {f"{self._name}.n": pl.col(f"{self._name}.n").sum()}
        if self.column is not None:
            for part in ("sum", "about"):
                merged[f"{self._name}.{part}"] = sum_of_values(pl.col(f"{self._name}.{part}"))
        return merged

    def finish(self) -> pl.Expr:
        n = pl.col(f"{self._name}.n")
        if self.column is None:
            return n
        total, about = pl.col(f"{self._name}.sum"), pl.col(f"{self._name}.about")
        fits = (about - total.cast(pl.Float64)).abs() < 2.0**62  # see `Sum`
        return pl.when(n > 0).then(about / n if isinstance(self.of, Mean) else pl.when(fits).then(total))


def signed(aggregates: Mapping[str, object]) -> dict[str, Signed]:
    """The aggregates for rows with retractions.

    Raises:
        NewnormalError: ``AGGREGATE_UNSUPPORTED`` if one cannot take a row back.
    """
    unfit = [name for name, aggregate in aggregates.items() if type(aggregate) not in (Count, Sum, Mean)]
    if unfit:
        what = f"{', '.join(unfit)} cannot take back a row that the windows before it retract"
        raise NewnormalError("AGGREGATE_UNSUPPORTED", what, "aggregate()", "Count, Sum, Mean", "no job")
    return {name: Signed(aggregate) for name, aggregate in aggregates.items()}  # type: ignore[arg-type]
