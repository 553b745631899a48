"""What operators in event-time order share: holding records back, their order, and what is late."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import pyarrow as pa

from engine.spec.operator import Operator


@dataclass(frozen=True, kw_only=True)
class EventTimeOrdered(Operator):
    """An operator in event-time order; the stream that it is put on says the rest.

    Args:
        key: The columns that it is keyed by.
        time: The event-time column.
        loops: Numbers of the inputs that do not hold the watermark: their records are never late; one behind the
            watermark takes effect at once, with the watermark for its time.
    """

    key: tuple[str, ...] = ()
    time: str = "time"
    loops: tuple[int, ...] = ()

    def bound(self, key: tuple[str, ...], time: str, loops: tuple[int, ...] = ()) -> Self:
        """This operator, put on a stream with this key and time column."""
        return replace(self, key=key, time=time, loops=loops)

    def late_forms(self, given: Sequence[pa.Schema]) -> Sequence[pa.Schema]:
        return [form for number, form in enumerate(given) if number not in self.loops]
