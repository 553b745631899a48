"""Deduplication: of records that agree in some columns, only the first one within a period passes."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from engine.operators.ordered import EventTimeOrdered
from engine.spec.columns import require
from engine.spec.duration import DurationField


@dataclass(frozen=True)
class Deduplicate(EventTimeOrdered):
    """Lets a record pass unless an equal one has passed within the period before it.

    Args:
        by: The columns in which duplicates agree, besides the key.
        within: The period. A record at exactly this distance after the last one that passed passes again.
    """

    by: tuple[str, ...] = ()
    within: DurationField = DurationField("within", "1h")

    def results(self, columns: pa.Schema) -> pa.Schema | None:
        require(self.by, columns, "Deduplicate(by)")
        return columns

    @property
    def within_ms(self) -> int:
        """`within` in milliseconds."""
        return int(self.within)
