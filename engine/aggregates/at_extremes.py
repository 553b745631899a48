"""The value of one column where another one is smallest or largest, such as the time of the highest price."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import polars as pl

from engine.aggregates.aggregate import Aggregate


@dataclass(frozen=True)
class _By(Aggregate):
    """The value of ``column`` in the record whose ``by`` is extreme; of several such records the smallest value.

    Records that lack one of the two values are skipped; if there are no others the result is null.

    Args:
        column: The column that the result is taken from.
        by: The column, of numbers, that is compared.
    """

    most: ClassVar[bool]
    column: str
    by: str

    @property
    def _names(self) -> tuple[str, str]:
        name = f"{self.column}.{'max' if self.most else 'min'}_by.{self.by}"
        return name, f"{name}.at"

    def _pick(self, value: pl.Expr, by: pl.Expr) -> dict[str, pl.Expr]:
        by = pl.when(value.is_not_null()).then(by)
        best = by.max() if self.most else by.min()
        name, at = self._names
        return {name: value.filter(by == best).min(), at: best}

    def lift(self) -> dict[str, pl.Expr]:
        return self._pick(pl.col(self.column), pl.col(self.by))

    def merge(self) -> dict[str, pl.Expr]:
        name, at = self._names
        return self._pick(pl.col(name), pl.col(at))

    def finish(self) -> pl.Expr:
        return pl.col(self._names[0])


class MinBy(_By):
    """The value of a column where another one is smallest.

    >>> prices = pl.DataFrame({"price": [5.0, 3.0, 4.0], "time": [10, 20, 30]})
    >>> prices.select(**MinBy("time", by="price").lift()).row(0)
    (20, 3.0)
    """

    most = False


class MaxBy(_By):
    """The value of a column where another one is largest."""

    most = True
