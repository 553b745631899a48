"""Eviction: which records of a window still count when it fires. The window then keeps its records, not their sums."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

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

    @abstractmethod
    def reference(self, records: Sequence[dict[str, Any]], time: str) -> list[dict[str, Any]]:
        """Those of one window's records, in event-time order, that stay: the specification."""


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

    def reference(self, records: Sequence[dict[str, Any]], time: str) -> list[dict[str, Any]]:
        return list(records[-self.n :])


@dataclass(frozen=True)
class KeepRecent(Evictor):
    """The records less than ``span`` older than the newest one."""

    span: str

    def __post_init__(self) -> None:
        positive(self.span, "evict.span")

    def keep(self, time: str) -> pl.Expr:
        return pl.col(NEWEST) - pl.col(time) < positive(self.span, "evict.span")

    def reference(self, records: Sequence[dict[str, Any]], time: str) -> list[dict[str, Any]]:
        newest = records[-1][time]
        return [r for r in records if newest - r[time] < positive(self.span, "evict.span")]
