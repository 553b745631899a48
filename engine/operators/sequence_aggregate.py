"""Aggregates over windows that the sequence of a key's records decides."""

from __future__ import annotations

from dataclasses import dataclass, field

from engine.aggregates import AnyAggregate
from engine.operators.ordered import EventTimeOrdered
from engine.operators.sequence_windows import SequenceWindows


@dataclass(frozen=True)
class SequenceAggregate(EventTimeOrdered):
    """One result a window: the key, ``window_start``, ``window_end``, ``revision`` (always 0) and the aggregates.

    Args:
        windows: How a key's records are cut.
        aggregates: Result columns.
    """

    windows: SequenceWindows
    aggregates: dict[str, AnyAggregate] = field(default_factory=dict)

    def result_time(self, time: str) -> str:
        return "window_end"
