"""The base of operators in event-time order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import pyarrow as pa

from engine.spec.operator import Operator


@dataclass(frozen=True, kw_only=True)
class EventTimeOrdered(Operator):
    """An operator that applies the records of each key in event-time order; `bound` sets these fields from the stream.

    Args:
        key: The key columns.
        time: The event-time column.
        loops: Numbers of the inputs that do not hold the watermark. Their records are never late: one that is older
            than the watermark takes effect at once, with the watermark as its time.
    """

    key: tuple[str, ...] = ()
    time: str = "time"
    loops: tuple[int, ...] = ()

    def bound(self, key: tuple[str, ...], time: str, loops: tuple[int, ...] = ()) -> Self:
        """This operator for a stream with this key and time column."""
        return replace(self, key=key, time=time, loops=loops)

    def late_forms(self, inputs: Sequence[pa.Schema]) -> Sequence[pa.Schema]:
        return [form for number, form in enumerate(inputs) if number not in self.loops]
