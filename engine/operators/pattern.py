"""Patterns over the sequence of a key's records, such as A and then B within a minute (cf. SQL's MATCH_RECOGNIZE)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import pyarrow as pa

from engine.operators.ordered import EventTimeOrdered
from engine.spec.choice import check_choice
from engine.spec.columns import require
from engine.spec.duration import DurationField
from engine.spec.errors import NewnormalError
from engine.spec.expressions import expression
from engine.spec.steps import Where, after

Follows = Literal["followed_by", "next", "absent"]
After = Literal["each", "past_last"]


@dataclass(frozen=True)
class Event:
    """One event of a pattern.

    Args:
        name: Its name. The columns of its record are called ``<name>_<column>`` in conditions of later events and in
            results.
        where: SQL condition on the columns of the record and of the records of earlier events.
        how: ``followed_by``: other records may lie between this event and the one before. ``next``: no other record of
            the key may lie between. ``absent``: no such record may come before the next event or, as the last event,
            until the time of the pattern is up.
    """

    name: str
    where: str
    how: Follows = "followed_by"

    def __post_init__(self) -> None:
        check_choice(self.how, Follows, f"event {self.name}")


@dataclass(frozen=True)
class Pattern(EventTimeOrdered):
    """Each record that is the first event starts a run; each run takes the first record that is its next event.

    A run ends without a match after `within`, at a record of an ``absent`` event, or at a record that is not the
    required ``next`` event. A result has the key, the time of the last event (for an absence: the end of its time),
    and for each event that is not absent ``<name>_time`` and the `columns`.

    Args:
        events: The events in their order.
        within: Largest time between the first event and any other.
        columns: Columns of the events' records that conditions or results need.
        after: ``each``: runs do not influence one another. ``past_last``: a match ends all other runs of its key, and
            the next run starts after its last record. If several runs match with one record, the oldest counts. Where
            the last event is an absence, the last record is the one before it: runs that began up to that record end
            when the absence is known, and later runs go on.

    Raises:
        NewnormalError: ``PATTERN_INVALID``; ``EXPRESSION_INVALID``.
    """

    events: tuple[Event, ...]
    within: DurationField = DurationField("within")
    columns: tuple[str, ...] = ()
    after: After = "each"

    def __post_init__(self) -> None:
        check_choice(self.after, After, "Pattern(after)")
        for event in self.events:
            expression(event.where, f"event {event.name}")
        names = [event.name for event in self.events]
        wrong = ""
        if not self.events or self.events[0].how != "followed_by":
            wrong = "the first event has nothing before it"
        elif len(set(names)) < len(names):
            wrong = f"two events of one name: {', '.join(names)}"
        if wrong:
            raise NewnormalError("PATTERN_INVALID", wrong, "pattern", "events that follow one another")

    def results(self, columns: pa.Schema) -> pa.Schema | None:
        names = [self.time, *(name for name in self.columns if name != self.time)]
        require([*self.key, *names], columns, "Pattern(columns)")
        captured = [(f"{event.name}_{name}", columns.field(name).type) for event in self.taken for name in names]
        before: list[tuple[str, pa.DataType]] = []
        for event in self.events:
            seen = pa.schema([*columns, *(pair for pair in before if pair[0] not in columns.names)])
            after([Where(event.where)], seen, f"event {event.name}")
            before += [pair for pair in captured if pair[0].startswith(f"{event.name}_")]
        return pa.schema([*(columns.field(name) for name in (*self.key, self.time)), *captured])

    @property
    def within_ms(self) -> int:
        """`within` in milliseconds."""
        return int(self.within)

    @property
    def taken(self) -> list[Event]:
        """The events for which a run takes a record: all but the absent ones."""
        return [event for event in self.events if event.how != "absent"]

    @property
    def ends_in_absence(self) -> bool:
        """Whether the last event is an absence, so that a run matches when its time is up."""
        return self.events[-1].how == "absent"

    def absent(self, stage: int) -> list[Event]:
        """The absent events that must not come while a run has taken ``stage`` records."""
        seen, absent = 0, []
        for event in self.events:
            seen += event.how != "absent"
            if event.how == "absent" and seen == stage:
                absent.append(event)
        return absent
