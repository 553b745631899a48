"""Own keyed logic in event-time order: a user's function over columns, with state, timers and keys that expire."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from engine.operators.ordered import EventTimeOrdered
from engine.operators.turn import Logic
from engine.spec.columns import require
from engine.spec.duration import DurationField


@dataclass(frozen=True)
class Process(EventTimeOrdered):
    """A user's logic over the sequence of each key.

    Args:
        logic: What is done with each record and timer; of a module, so that workers can import it.
        idle_after: A key without a record for so long is forgotten, its timers after that with it; empty: never.
    """

    logic: Logic
    idle_after: DurationField = DurationField("idle_after", "", empty=True)

    def results(self, given: pa.Schema) -> pa.Schema | None:
        require(self.logic.needs(), given, f"process({type(self.logic).__name__})")
        return None

    @property
    def idle_ms(self) -> int:
        """`idle_after` in milliseconds; 0: never."""
        return int(self.idle_after)
