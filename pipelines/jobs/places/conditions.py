"""The changes that follow from what is said of the condition of a machine again and again: only transitions are told.

A pure function of what is said of a machine, in event-time order.
"""

from __future__ import annotations

from dataclasses import astuple, dataclass
from typing import NamedTuple

import orjson

from engine.operators.turn import NO_TIMER
from pipelines.contracts.records.change import ChangeKind

LAPSED = 120_000
"""A cordon of which nothing was said for so many milliseconds is over if the contrary was said since."""
GONE = 600_000
"""What has ended, and of which nothing was said for so many milliseconds, is gone: its gauges come more often."""
AGAIN = 1_800_000
"""It is told again if it had ended so many milliseconds before, as an end explains a silence within an hour only."""
GRACE = 30_000
"""So many milliseconds before the time of its deletion a pod was told to end: the grace period that is Kubernetes'
default."""
LONG_AGO = 86_400_000
"""What was to have ended so many milliseconds before explains no silence any more."""
WORDS: dict[ChangeKind, str] = {
    "ended": "has completed",
    "ending": "is being deleted",
    "cordon": "is cordoned",
    "uncordon": "is no longer cordoned",
}


class Told(NamedTuple):
    """A change of one machine.

    Attributes:
        entity: The machine.
        kind: What was done.
        time: Event time, epoch milliseconds.
    """

    entity: str
    kind: ChangeKind
    time: int


@dataclass
class Conditions:
    """In which conditions a machine is.

    Attributes:
        kind: ``ended`` or ``cordon`` while that is so; empty: neither.
        entity: The machine, while a kind is there.
        since: When this was told, epoch milliseconds.
        last: When it was said last.
        over: When the contrary was first said after that; 0: it was not.
        deletion: Until when it is to have ended, of the last deletion that was told; 0: none was.
    """

    kind: ChangeKind | str = ""
    entity: str = ""
    since: int = 0
    last: int = 0
    over: int = 0
    deletion: int = 0

    @classmethod
    def of(cls, text: str) -> Conditions:
        """The inverse of `text`."""
        return cls(*orjson.loads(text)) if text else cls()

    def text(self) -> str:
        """As it is kept; empty if nothing is."""
        return orjson.dumps(astuple(self)).decode() if self != Conditions() else ""

    def take(self, entity: str, condition: str, seen: int | None, now: int) -> Told | None:
        """Takes in what is said at an event time, see `pipelines.formats.placements.facts.Fact`; what that changes.

        A node is cordoned as long as anybody says so: of two clusters that have nodes of one name, one may.
        """
        told = None
        if condition == "schedulable":
            self.over = self.over or (now if self.kind == "cordon" else 0)
        elif condition != "ending":
            kind: ChangeKind = "cordon" if condition == "cordoned" else "ended"
            if kind != self.kind:
                self.kind, self.entity, self.since, told = kind, entity, now, Told(entity, kind, now)
            self.last, self.over = now, 0
        elif seen is not None and seen > self.deletion and seen > now - LONG_AGO:
            self.deletion, told = seen, Told(entity, "ending", min(seen - GRACE, now))
        return told

    @property
    def timer(self) -> int:
        """When a condition is over; a cordon lasts until the contrary is said."""
        if self.kind == "ended":
            return self.last + GONE
        return self.last + LAPSED if self.over else NO_TIMER

    def lapse(self, now: int) -> Told | None:
        """What is told at a timer, which may be that of something else.

        What ended long ago is told again, with the time at which it was seen last: until then its gauges went on, so
        that the machine falls silent only now.
        """
        if now < self.timer:
            return None
        told = Told(self.entity, "uncordon", self.over) if self.kind == "cordon" else None
        if self.kind == "ended" and self.last >= self.since + AGAIN:
            told = Told(self.entity, "ended", self.last)
        self.kind, self.entity, self.since, self.last, self.over = "", "", 0, 0, 0
        return told
