"""Aggregates over the results of windows that retract: a row with ``retraction`` true is taken off again.

Only what can be taken off exactly is offered: counts, sums and means. A smallest value or a quantile does not know what
it would be without a value.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl

from engine.aggregates.aggregate import Aggregate
from engine.aggregates.exact_sums import ExactSum
from engine.aggregates.moments import Count, Mean, Sum
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
    def _n(self) -> str:
        return f"signed.{self.column or ''}.n"

    @property
    def _total(self) -> ExactSum:
        return ExactSum(f"signed.{self.column}")

    def lift(self) -> dict[str, pl.Expr]:
        if self.column is None:
            return {self._n: _WEIGHT.sum()}
        value = pl.col(self.column)
        n = pl.when(value.is_not_null()).then(_WEIGHT).otherwise(0).sum()
        return {self._n: n} | self._total.lift(value * _WEIGHT, value.cast(pl.Float64) * _WEIGHT)

    def merge(self) -> dict[str, pl.Expr]:
        return {self._n: pl.col(self._n).sum()} | (self._total.merge() if self.column is not None else {})

    def finish(self) -> pl.Expr:
        n = pl.col(self._n)
        if self.column is None:
            return n
        return pl.when(n > 0).then(self._total.about / n if isinstance(self.of, Mean) else self._total.finish())

    def beyond(self) -> pl.Expr | None:
        if self.column is None:
            return None
        beyond = self._total.beyond() if isinstance(self.of, Sum) else ~self._total.about.is_finite()
        return (pl.col(self._n) > 0) & beyond


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
