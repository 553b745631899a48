"""Deduplication: of records that agree in some columns, the first one within a time."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from engine.operators.ordered import EventTimeOrdered
from engine.spec.columns import require
from engine.spec.duration import DurationField


@dataclass(frozen=True)
class Deduplicate(EventTimeOrdered):
    """Lets a record pass if none that agrees with it has passed within the time before it.

    Args:
        by: The columns in which duplicates agree, besides the key.
        within: How long a record that passed holds back its duplicates; at exactly this distance one passes again.
    """

    by: tuple[str, ...] = ()
    within: DurationField = DurationField("within", "1h")

    def results(self, given: pa.Schema) -> pa.Schema | None:
        require(self.by, given, "Deduplicate(by)")
        return given

    @property
    def within_ms(self) -> int:
        """`within` in milliseconds."""
        return int(self.within)
