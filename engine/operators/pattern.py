"""Patterns over the sequence of a key's records: A, then B, within a time; what SQL's MATCH_RECOGNIZE is used for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import pyarrow as pa

from engine.operators.ordered import EventTimeOrdered
from engine.spec.columns import require
from engine.spec.duration import DurationField
from engine.spec.errors import NewnormalError
from engine.spec.steps import Where, after, expression


@dataclass(frozen=True)
class Event:
    """One event of a pattern.

    Args:
        name: Its name; columns of its record are ``<name>_<column>`` in conditions of later events and in results.
        where: SQL condition on a record: its columns, and those of the events before.
        how: ``followed_by``: any records may lie between it and the event before; ``next``: none of the key may;
            ``absent``: no such record may come before the next event, or, at the end, until the pattern's time is up.
    """

    name: str
    where: str
    how: Literal["followed_by", "next", "absent"] = "followed_by"


@dataclass(frozen=True)
class Pattern(EventTimeOrdered):
    """Each record that is the first event starts a run; each run takes the first record that is its next event.

    A run ends without a match after `within`, or by a record that should be absent, or by one that is not the `next`
    that it must be. A result has the key, the time of the last event (or, if that is an absence, of its end), and of
    each event that is not absent ``<name>_time`` and its `columns`.

    Args:
        events: The pattern.
        within: Greatest distance of any event from the first one.
        columns: Columns of the events' records that conditions or results need.
        after: ``each``: all runs are on their own. ``past_last``: a match ends all other runs of its key, and the next
            one starts after its last record; of several runs that match with one record the oldest counts.

    Raises:
        NewnormalError: ``PATTERN_INVALID``; ``EXPRESSION_INVALID``.
    """

    events: tuple[Event, ...]
    within: DurationField = DurationField("within")
    columns: tuple[str, ...] = ()
    after: Literal["each", "past_last"] = "each"

    def __post_init__(self) -> None:
        for event in self.events:
            expression(event.where, f"event {event.name}")
        names = [event.name for event in self.events]
        wrong = ""
        if not self.events or self.events[0].how != "followed_by":
            wrong = "the first event has nothing before it"
        elif len(set(names)) < len(names):
            wrong = f"two events of one name: {', '.join(names)}"
        elif self.ends_in_absence and self.after == "past_last":
            wrong = "an absence at the end has no last record to go on after"
        if wrong:
            raise NewnormalError("PATTERN_INVALID", wrong, "pattern", "events that follow one another")

    def results(self, given: pa.Schema) -> pa.Schema | None:
        names = [self.time, *(name for name in self.columns if name != self.time)]
        require([*self.key, *names], given, "Pattern(columns)")
        captured = [(f"{event.name}_{name}", given.field(name).type) for event in self.taken for name in names]
        before: list[tuple[str, pa.DataType]] = []
        for event in self.events:
            seen = pa.schema([*given, *(pair for pair in before if pair[0] not in given.names)])
            after([Where(event.where)], seen, f"event {event.name}")
            before += [pair for pair in captured if pair[0].startswith(f"{event.name}_")]
        return pa.schema([*(given.field(name) for name in (*self.key, self.time)), *captured])

    @property
    def within_ms(self) -> int:
        """`within` in milliseconds."""
        return int(self.within)

    @property
    def taken(self) -> list[Event]:
        """The events that a run takes a record for."""
        return [event for event in self.events if event.how != "absent"]

    @property
    def ends_in_absence(self) -> bool:
        """Whether a run must wait for nothing at its end."""
        return self.events[-1].how == "absent"

    def absent(self, stage: int) -> list[Event]:
        """The events that must not come while a run that has taken ``stage`` records waits."""
        seen, found = 0, []
        for event in self.events:
            seen += event.how != "absent"
            if event.how == "absent" and seen == stage:
                found.append(event)
        return found
