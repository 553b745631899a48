"""A user's own keyed logic in event-time order, with state, timers, and keys that expire."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from engine.operators.ordered import EventTimeOrdered
from engine.operators.turn import Logic
from engine.spec.columns import require
from engine.spec.duration import DurationField
from engine.spec.most_keys import MostKeys
from engine.spec.state_form import StateForm, described, types


@dataclass(frozen=True)
class Process(EventTimeOrdered):
    """Applies a user's logic to the sequence of records of each key.

    Args:
        logic: The logic, called for records and timers; defined in a module, so that workers can import it.
        idle_after: A key without a record for so long is forgotten, and so are its later timers. Empty: never.
        most: How many keys there may be: those of the state, or longer ones, of which some are in one key of it. The
            records of others are refused, in the order of event time. ``None``: any number.
        slots: In so many slots, by the first key column, keys are counted apart; a multiple of the number of shards.
    """

    logic: Logic
    idle_after: DurationField = DurationField("idle_after", "", empty=True)
    most: MostKeys | None = None
    slots: int = 1

    def state_form(self, columns: pa.Schema | None) -> StateForm | None:
        """A state is what the logic says that it keeps; the logic itself may change."""
        kept = {f"state {name}": type(value).__name__ for name, value in self.logic.columns().items()}
        return StateForm({"operator": "Process", "key": described(self.key), "time": self.time}, types(columns) | kept)

    def results(self, columns: pa.Schema) -> pa.Schema | None:
        require(
            [*self.logic.needs(), *(self.most.key if self.most else ())],
            columns,
            f"process({type(self.logic).__name__})",
        )
        return None

    @property
    def idle_ms(self) -> int:
        """`idle_after` in milliseconds; 0: never."""
        return int(self.idle_after)
