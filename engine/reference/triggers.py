"""Triggers in plain Python: each window has a tree of nodes, evaluated at each moment of `engine.triggers.trigger`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from engine.triggers import (
    AfterAll,
    AfterAny,
    AfterCount,
    AfterEach,
    AfterProcessingTime,
    AfterWatermark,
    CustomTrigger,
    Never,
    OrFinally,
    Trigger,
)


@dataclass(frozen=True)
class Moment:
    """A moment at which triggers are evaluated.

    Attributes:
        kind: The kind of moment, see `engine.triggers.trigger`.
        before: The watermark before the micro-batch.
        now: The watermark at this moment: before the micro-batch, or after it at a moment of kind *watermark*.
        clock: Processing time.
    """

    kind: Literal["clock", "record", "watermark"]
    before: int
    now: int
    clock: int

    def timing(self, end: int) -> str:
        """The timing of a pane that fires now, for a window with this end: early, on time or late."""
        if end > self.now:
            return "early"
        return "on_time" if end > self.before else "late"


@dataclass
class Since:
    """The number of records since some moment, and the processing time of the first of them."""

    records: int = 0
    opened: int | None = None

    def take(self, clock: int) -> None:
        """Counts one more record."""
        self.records += 1
        self.opened = clock if self.opened is None else self.opened

    def merge(self, other: Since) -> None:
        """Adds the records of another window."""
        self.records += other.records
        self.opened = min((o for o in (self.opened, other.opened) if o is not None), default=None)


@dataclass
class View:
    """The window as its trigger sees it."""

    end: int
    pane: Since
    row: Callable[[], dict[str, Any]]


class Node:
    """A trigger of one window, with its state."""

    def __init__(self, trigger: Trigger) -> None:
        self.trigger = trigger
        self.parts = [Node(part) for part in trigger.parts]
        self.turn = 0
        self.over = False
        self.held = [False] * len(self.parts)
        self.since = Since()

    def take(self, clock: int) -> None:
        """Counts a record that has come into the window."""
        self.since.take(clock)
        for part in self.parts:
            part.take(clock)

    def merge(self, other: Node) -> None:
        """Merges the state of another window, when sessions merge."""
        self.turn, self.over = max(self.turn, other.turn), self.over or other.over
        self.held = [mine or its for mine, its in zip(self.held, other.held, strict=True)]
        self.since.merge(other.since)
        for mine, its in zip(self.parts, other.parts, strict=True):
            mine.merge(its)

    def ready(self, view: View, moment: Moment, since: Since) -> bool:  # noqa: PLR0911
        """Whether the trigger is ready; counts and times are taken from ``since``."""
        match self.trigger:
            case AfterCount(n):
                return since.records >= n
            case AfterProcessingTime(_, aligned) as every if since.opened is not None:
                first = since.opened - (since.opened % every.period_ms if aligned else 0)
                return moment.clock >= first + every.period_ms
            case AfterWatermark():
                return self._at_watermark(view, moment, since)
            case AfterAny():
                return any(part.ready(view, moment, since) for part in self.parts)
            case AfterAll():
                return all(self._were_or_are_ready(view, moment, since))
            case AfterEach():
                return self.parts[self.turn].ready(view, moment, since)
            case OrFinally():
                fires, ends = self.parts
                return not self.over and (fires.ready(view, moment, since) or ends.ready(view, moment, self.since))
            case CustomTrigger() as custom if view.pane.records:
                row = view.row() | {"fresh": view.pane.records, "watermark": moment.now, "clock": moment.clock}
                return custom.fires_one(row)
            case AfterProcessingTime() | Never() | CustomTrigger():
                return False
        raise TypeError(f"no trigger: {self.trigger!r}")

    def _at_watermark(self, view: View, moment: Moment, since: Since) -> bool:
        assert isinstance(self.trigger, AfterWatermark)
        parts = iter(self.parts)
        early = next(parts) if self.trigger.early else None
        late = next(parts) if self.trigger.late else None
        timing = moment.timing(view.end)
        if timing == "early":
            return early is not None and early.ready(view, moment, since)
        if timing == "on_time":
            return True
        if late is not None:
            return late.ready(view, moment, since)
        return moment.kind == "watermark" and view.pane.records > 0

    def _were_or_are_ready(self, view: View, moment: Moment, since: Since) -> list[bool]:
        parts = zip(self.held, self.parts, strict=True)
        return [held or part.ready(view, moment, since) for held, part in parts]

    def looked_at(self, view: View, moment: Moment, since: Since, fired: bool) -> None:
        """Updates the state after a moment; counts of the end of an `OrFinally` go on when the window fires."""
        if isinstance(self.trigger, AfterAll):
            held = self._were_or_are_ready(view, moment, since)
            self.held = [not fired and ready for ready in held]
        if isinstance(self.trigger, AfterEach):
            current = self.parts[self.turn]
            fires = fired and current.ready(view, moment, since)
            current.looked_at(view, moment, since, fired)
            ended = current.over if isinstance(current.trigger, OrFinally) else fires
            if ended and self.turn < len(self.parts) - 1:
                self.turn += 1
                self.parts[self.turn].begin()
        elif isinstance(self.trigger, OrFinally):
            over = self.parts[1].ready(view, moment, self.since)
            self.parts[0].looked_at(view, moment, since, fired)
            self.parts[1].looked_at(view, moment, self.since, False)
            self.over = self.over or over
        else:
            for part in self.parts:
                part.looked_at(view, moment, since, fired)

    def begin(self) -> None:
        """Begins this trigger's turn: its counts and times start now."""
        self.since = Since()
        for part in self.parts:
            part.begin()
