"""Evictors: which records of a window count when it fires. A window with an evictor keeps all its records."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import polars as pl

from engine.spec.duration import DurationField
from engine.spec.errors import NewnormalError
from engine.windows.window import positive

FROM_END, NEWEST = "from_end", "newest"
"""Columns that an evictor sees besides the record's own: rank from the end (0 is the newest), newest event time."""


class Evictor(ABC):
    """Says which records of a window count, in event-time order (records of one time by their values).

    So the order of arrival does not matter. Dropped records are not kept: an evictor that drops a record must also drop
    it after more records have come.
    """

    @abstractmethod
    def keep(self, time: str) -> pl.Expr:
        """An expression of the columns, `FROM_END` and `NEWEST`, true if a record counts; ``time``: the time column."""


@dataclass(frozen=True)
class KeepLast(Evictor):
    """Keeps the last ``n`` records.

    Raises:
        NewnormalError: ``EVICTOR_INVALID`` if ``n`` is below 1.
    """

    n: int

    def __post_init__(self) -> None:
        if self.n < 1:
            raise NewnormalError("EVICTOR_INVALID", f"cannot keep {self.n} records", "evict", "1 or more")

    def keep(self, time: str) -> pl.Expr:
        return pl.col(FROM_END) < self.n


@dataclass(frozen=True)
class KeepRecent(Evictor):
    """Keeps the records that are less than ``span`` older than the newest one."""

    span: DurationField = DurationField("evict.span")

    def __post_init__(self) -> None:
        positive(self.span, "evict.span")

    def keep(self, time: str) -> pl.Expr:
        return pl.col(NEWEST) - pl.col(time) < int(self.span)
