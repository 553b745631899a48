"""Count windows and delta windows in plain Python: when a window closes."""

from __future__ import annotations

from functools import singledispatch

from engine.operators.sequence_windows import CountWindows, DeltaWindows, SequenceWindows
from engine.spec.operator import Row


@singledispatch
def breaks(windows: SequenceWindows, window: list[Row], record: Row) -> bool:
    """Whether a record closes the open window and opens another one."""
    raise TypeError(f"no reference of {type(windows).__name__}: breaks.register(...)")


@singledispatch
def fills(windows: SequenceWindows, window: list[Row]) -> bool:
    """Whether a window is full with its last record."""
    raise TypeError(f"no reference of {type(windows).__name__}: fills.register(...)")


@breaks.register
def _(windows: CountWindows, window: list[Row], record: Row) -> bool:
    return False


@fills.register
def _(windows: CountWindows, window: list[Row]) -> bool:
    return len(window) >= windows.size


@breaks.register
def _(windows: DeltaWindows, window: list[Row], record: Row) -> bool:
    values = [r[windows.column] for r in [*window, record] if r[windows.column] is not None]
    return record[windows.column] is not None and abs(record[windows.column] - values[0]) > windows.threshold


@fills.register
def _(windows: DeltaWindows, window: list[Row]) -> bool:
    return False
