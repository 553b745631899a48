"""Triggers over many windows at once: a trigger becomes expressions over columns of the table of windows.

The state of a trigger is columns of that table. The pane has its number of records (`FRESH`) and the processing time of
its first record (`OPENED`). Each `OrFinally` has the same two columns, and whether it is over; each `AfterEach` has the
number of the trigger whose turn it is; each `AfterAll` has which triggers were ready. The specification is
`engine.reference.triggers`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import polars as pl

from engine.operators.windows import TRIGGER_STATE
from engine.spec.duration import END_OF_TIME, NEVER
from engine.triggers import (
    AfterAll,
    AfterAny,
    AfterCount,
    AfterEach,
    AfterProcessingTime,
    AfterWatermark,
    CustomTrigger,
    OrFinally,
    Trigger,
)

END, (FRESH, OPENED) = "window_end", TRIGGER_STATE
NEW = "__new"
"""Column with the number of records that a window has just received."""

_FALSE = pl.lit(False)
_ANY_NUMBER = 1 << 40


@dataclass(frozen=True)
class TriggerMoment:
    """A moment at which triggers are evaluated; see `engine.reference.triggers.Moment`."""

    kind: Literal["clock", "record", "watermark"]
    before: int
    now: int
    clock: int

    def timing(self) -> pl.Expr:
        """The timing of a pane that each window fires now: early, on time or late."""
        end = pl.col(END)
        late = pl.when(end > self.before).then(pl.lit("on_time")).otherwise(pl.lit("late"))
        return pl.when(end > self.now).then(pl.lit("early")).otherwise(late)


@dataclass(frozen=True)
class Scope:
    """Names of two columns: the number of records, and the processing time of the first one."""

    count: str = FRESH
    opened: str = OPENED


class TriggerNode:
    """A trigger within a tree of triggers.

    Args:
        trigger: The specification.
        numbers: Iterator that gives each node a number.
    """

    def __init__(self, trigger: Trigger, numbers: Iterator[int]) -> None:
        number = next(numbers)
        self.trigger = trigger
        self.parts = [TriggerNode(part, numbers) for part in trigger.parts]
        self.scope = Scope(f"until{number}.fresh", f"until{number}.opened")
        self.over, self.turn, self.own = f"until{number}.over", f"inorder{number}.turn", f"__own{number}"
        self.held = [f"allof{number}.{i}" for i in range(len(self.parts))] if isinstance(trigger, AfterAll) else []

    def all(self) -> Iterator[TriggerNode]:
        """This node and all nodes below it."""
        yield self
        for part in self.parts:
            yield from part.all()

    def ready(self, moment: TriggerMoment, scope: Scope) -> pl.Expr:  # noqa: PLR0911
        """Expression: whether this trigger is ready, for each window."""
        match self.trigger:
            case AfterCount(n):
                return pl.col(scope.count) >= n
            case AfterProcessingTime(_, aligned) as every:
                opened, period = pl.col(scope.opened), every.period_ms
                first = opened - opened % period if aligned else opened
                return (opened < END_OF_TIME) & (first <= max(NEVER, moment.clock - period))
            case AfterWatermark():
                return self._at_watermark(moment, scope)
            case AfterAny():
                return pl.any_horizontal([part.ready(moment, scope) for part in self.parts])
            case AfterAll():
                return pl.all_horizontal(self._were_or_are_ready(moment, scope))
            case AfterEach():
                turns = [(pl.col(self.turn) == i) & part.ready(moment, scope) for i, part in enumerate(self.parts)]
                return pl.any_horizontal(turns)
            case OrFinally():
                fires, ends = self.parts
                return ~pl.col(self.over) & (fires.ready(moment, scope) | ends.ready(moment, self.scope))
            case CustomTrigger():
                return pl.col(self.own)
        return _FALSE

    def _at_watermark(self, moment: TriggerMoment, scope: Scope) -> pl.Expr:
        assert isinstance(self.trigger, AfterWatermark)
        parts = iter(self.parts)
        early = next(parts).ready(moment, scope) if self.trigger.early else _FALSE
        if self.trigger.late:
            late = next(parts).ready(moment, scope)
        else:
            late = pl.col(FRESH) > 0 if moment.kind == "watermark" else _FALSE
        end = pl.col(END)
        return pl.when(end > moment.now).then(early).when(end > moment.before).then(True).otherwise(late)

    def _were_or_are_ready(self, moment: TriggerMoment, scope: Scope) -> list[pl.Expr]:
        parts = zip(self.held, self.parts, strict=True)
        return [pl.col(held) | part.ready(moment, scope) for held, part in parts]

    def looked_at(
        self, moment: TriggerMoment, scope: Scope, fired: pl.Expr, active: pl.Expr, begun: dict[str, pl.Expr]
    ) -> dict[str, pl.Expr]:
        """Expressions of the trigger's state after a moment. Adds to ``begun`` where the turn of an `OrFinally` begins.

        The state of the end of an `OrFinally` does not start afresh when its window fires.
        """
        moved: dict[str, pl.Expr] = {}
        if isinstance(self.trigger, AfterAll):
            for held, ready in zip(self.held, self._were_or_are_ready(moment, scope), strict=True):
                moved[held] = pl.when(active).then(ready & ~fired).otherwise(pl.col(held))
        if isinstance(self.trigger, AfterEach):
            steps = []
            for i, part in enumerate(self.parts):
                mine = active & (pl.col(self.turn) == i)
                moved |= part.looked_at(moment, scope, fired, mine, begun)
                ended = part.ended(moment) if isinstance(part.trigger, OrFinally) else fired & part.ready(moment, scope)
                if i < len(self.parts) - 1:
                    steps.append(mine & ended)
                    for node in self.parts[i + 1].all():
                        begun[node.over] = begun.get(node.over, _FALSE) | (mine & ended)
            moved[self.turn] = pl.col(self.turn) + pl.sum_horizontal([_FALSE, *steps]).cast(pl.Int64)
        elif isinstance(self.trigger, OrFinally):
            moved |= self.parts[0].looked_at(moment, scope, fired, active, begun)
            moved |= self.parts[1].looked_at(moment, self.scope, _FALSE, active, begun)
            moved[self.over] = pl.when(active).then(self.ended(moment)).otherwise(pl.col(self.over))
        else:
            for part in self.parts:
                moved |= part.looked_at(moment, scope, fired, active, begun)
        return moved

    def ended(self, moment: TriggerMoment) -> pl.Expr:
        """Expression: whether an `OrFinally` is over after this moment."""
        return pl.col(self.over) | self.parts[1].ready(moment, self.scope)

    def counters(self, scope: Scope) -> Iterator[tuple[str, int]]:
        """The columns that count records, each with the count at which a window may fire."""
        if isinstance(self.trigger, AfterCount):
            yield scope.count, self.trigger.n
        for i, part in enumerate(self.parts):
            yield from part.counters(self.scope if isinstance(self.trigger, OrFinally) and i else scope)


class TriggerLogic:
    """A trigger over a table of windows."""

    def __init__(self, trigger: Trigger) -> None:
        self.trigger = trigger
        self.root = TriggerNode(trigger, iter(range(1 << 20)))
        nodes = list(self.root.all())
        self.customs = {node.own: node.trigger for node in nodes if isinstance(node.trigger, CustomTrigger)}
        self.untils = [node for node in nodes if isinstance(node.trigger, OrFinally)]
        self.held = [name for node in nodes for name in node.held]
        self.turns = [node for node in nodes if isinstance(node.trigger, AfterEach)]
        self.counters = sorted(set(self.root.counters(Scope())))
        self.scopes = [Scope(), *(node.scope for node in self.untils)]

    def defaults(self) -> dict[str, pl.Expr]:
        """The state columns of a new window."""
        columns = {scope.count: pl.lit(0, pl.Int64) for scope in self.scopes}
        columns |= {scope.opened: pl.lit(END_OF_TIME, pl.Int64) for scope in self.scopes}
        columns |= dict.fromkeys([*(node.over for node in self.untils), *self.held], _FALSE)
        return columns | {node.turn: pl.lit(0, pl.Int64) for node in self.turns}

    def merged(self) -> dict[str, pl.Expr]:
        """The state columns of a window that several windows were merged into."""
        columns = {scope.count: pl.col(scope.count).sum() for scope in self.scopes}
        columns |= {scope.opened: pl.col(scope.opened).min() for scope in self.scopes}
        columns |= {name: pl.col(name).any() for name in (*(node.over for node in self.untils), *self.held)}
        return columns | {node.turn: pl.col(node.turn).max() for node in self.turns}

    def took(self, clock: int) -> dict[str, pl.Expr]:
        """The state columns after `NEW` records."""
        columns = {scope.count: pl.col(scope.count) + pl.col(NEW) for scope in self.scopes}
        for scope in self.scopes:
            opened = pl.col(scope.opened)
            columns[scope.opened] = pl.when(pl.col(NEW) > 0).then(pl.min_horizontal(opened, clock)).otherwise(opened)
        return columns

    def ready(self, moment: TriggerMoment) -> pl.Expr:
        """Whether each window is ready; the answer of a `CustomTrigger` must be in its column."""
        return self.root.ready(moment, Scope())

    def looked_at(self, moment: TriggerMoment, fired: pl.Expr, active: pl.Expr) -> dict[str, pl.Expr]:
        """The state columns after a moment at which some windows fired and only active ones were evaluated."""
        begun: dict[str, pl.Expr] = {}
        columns = self.root.looked_at(moment, Scope(), fired, active, begun)
        for node in self.untils:
            if node.over in begun:
                for name, new in ((node.scope.count, 0), (node.scope.opened, END_OF_TIME)):
                    columns[name] = pl.when(begun[node.over]).then(pl.lit(new, pl.Int64)).otherwise(pl.col(name))
        return columns

    def room(self, moment: TriggerMoment) -> pl.Expr:
        """How many records each window can take in before its trigger must be evaluated again."""
        if self.customs:
            return pl.lit(1, pl.Int64)
        rooms = [
            pl.when(pl.col(c) < n).then(n - pl.col(c)).otherwise(pl.lit(_ANY_NUMBER, pl.Int64))
            for c, n in self.counters
        ]
        return pl.when(self.ready(moment)).then(pl.lit(1, pl.Int64)).otherwise(pl.min_horizontal(rooms))

    def room_of_all(self) -> pl.Expr:
        """The same for all windows of a key together, which may still merge (sessions)."""
        if self.customs or self.held:
            return pl.lit(1, pl.Int64)
        return pl.min_horizontal([n - pl.col(c).sum() for c, n in self.counters]).clip(1)
