"""Aggregates over count windows and delta windows."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import pyarrow as pa

from engine.aggregates import AnyAggregate, Rate
from engine.operators.ordered import EventTimeOrdered
from engine.operators.sequence_windows import SequenceWindows
from engine.operators.windows import window_results
from engine.spec.columns import require, require_numbers
from engine.spec.errors import NewnormalError


@dataclass(frozen=True)
class SequenceAggregate(EventTimeOrdered):
    """One result for each window: key, ``window_start``, ``window_end``, ``revision`` (always 0) and the aggregates.

    Args:
        windows: How the records of a key are divided into windows.
        aggregates: The aggregate of each result column.

    Raises:
        NewnormalError: ``AGGREGATE_UNSUPPORTED`` for a `Rate`, which needs the sample before its window.
    """

    free: ClassVar[tuple[str, ...]] = ("aggregates",)

    windows: SequenceWindows
    aggregates: dict[str, AnyAggregate] = field(default_factory=dict)

    def __post_init__(self) -> None:
        rates = [name for name, aggregate in self.aggregates.items() if isinstance(aggregate, Rate)]
        if rates:
            what = f"{', '.join(rates)}: a rate in windows that records decide"
            raise NewnormalError("AGGREGATE_UNSUPPORTED", what, "aggregate()", "aligned windows for rates")

    def result_ahead(self, ahead: int) -> int:
        return 1

    def result_time(self, time: str) -> str:
        return "window_end"

    def results(self, columns: pa.Schema) -> pa.Schema | None:
        require(self.windows.names, columns, repr(self.windows))
        require_numbers(self.windows.names, columns, repr(self.windows))
        return window_results(self.key, self.aggregates, ["revision"], columns)
