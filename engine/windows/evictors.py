"""Eviction: which records of a window still count when it fires. The window then keeps its records, not their sums."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import polars as pl

from engine.spec.duration import DurationField
from engine.spec.errors import NewnormalError
from engine.windows.window import positive

FROM_END, NEWEST = "from_end", "newest"
"""Columns beside the record's own: its rank from the end (0 the newest), and the window's greatest event time."""


class Evictor(ABC):
    """Tells which records stay, by event time (those of one time by their values) so that arrival does not matter.

    One that drops a record must drop it still when more records have come: what it dropped is not kept.
    """

    @abstractmethod
    def keep(self, time: str) -> pl.Expr:
        """Whether a record stays, from its columns, `FROM_END` and `NEWEST`; ``time`` is the event-time column."""


@dataclass(frozen=True)
class KeepLast(Evictor):
    """The last ``n`` records.

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
    """The records less than ``span`` older than the newest one."""

    span: DurationField = DurationField("evict.span")

    def __post_init__(self) -> None:
        positive(self.span, "evict.span")

    def keep(self, time: str) -> pl.Expr:
        return pl.col(NEWEST) - pl.col(time) < int(self.span)
