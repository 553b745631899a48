"""The base of operators in event-time order: records are held back until the watermark has passed them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar

import polars as pl

from engine.operators.ordered import EventTimeOrdered
from engine.spec.duration import END_OF_TIME
from engine.spec.inputs import INPUT
from engine.spec.operator import Progress
from engine.state.part_log import Part, PartLog
from engine.state.rescaling import Rescaling
from engine.state.segments import ShardState, Tables
from engine.vectorized.processor import Processor, Results, StateCounts

DUE = "__due"
MOST_PARTS = 16


class Waiting:
    """Records that wait until the watermark reaches the instant at which they are due, kept like a log.

    The records of each micro-batch are a part of their own. A part is read when one of its records is due, or when
    there are too many parts. So the cost of a micro-batch follows its records, not those that wait.

    State: the log ``held``, or another; the mark of a part is the instant at which its first record is due.

    Args:
        state: The state of the shard.
        name: Name of the log.
        near: Of a part with more than twice as many records so many that are due first become one of their own, so that
            what is read long before its time is not read again each time that some of it is due; ``None``: none.
    """

    def __init__(self, state: ShardState, name: str = "held", near: int | None = None) -> None:
        self.log, self._near = PartLog(state, name), near

    @property
    def first(self) -> int:
        """The instant at which the first of the records is due; `END_OF_TIME` if none waits."""
        return min(self.log.marks, default=END_OF_TIME)

    def release(self, batch: pl.DataFrame, due: pl.Expr, now: int) -> pl.DataFrame:
        """Adds a batch; returns all records that are due at ``now``, in any order."""
        read = [part for part in self.log.parts if part.mark <= now]
        if not batch.height and not read:
            return batch
        fresh = [batch.with_columns(due.alias(DUE))] if batch.height else []
        waiting = _concat([*map(self._records, read), *fresh])
        is_due = waiting[DUE] <= now
        ready, rest = waiting.filter(is_due), waiting.filter(~is_due)
        if not rest.height:
            self.log.forget(read)
        else:
            if not read and len(self.log.parts) >= MOST_PARTS:
                parts = self.log.fewest_neighbours()
                self._replace(parts, _concat([*map(self._records, parts)]))
            near = len(rest) if self._near is None or len(rest) <= 2 * self._near else self._near
            rest = rest if near == len(rest) else rest.sort(DUE)
            self._replace(read, rest[:near])
            if near < len(rest):
                self._replace([], rest[near:])
        return ready.drop(DUE)

    def _records(self, part: Part) -> pl.DataFrame:
        return self.log.read(part)["records"]

    def _replace(self, parts: Sequence[Part], records: pl.DataFrame) -> None:
        first = records[DUE].min()
        assert isinstance(first, int)
        self.log.replace(parts, {"records": records}, first, records.height)


def _concat(tables: list[pl.DataFrame]) -> pl.DataFrame:
    return pl.concat(tables, how="diagonal_relaxed") if len(tables) > 1 else tables[0]


class OrderedProcessor(Processor):
    """The logic of an `EventTimeOrdered`: each record is applied once, when the watermark has passed it."""

    def __init__(self, config: EventTimeOrdered) -> None:
        self.key, self.time, self.loops = list(config.key), config.time, list(config.loops)

    instant: ClassVar[bool] = True
    """Whether each record takes effect by itself; otherwise it must wait for other records of its window."""

    ahead: int = 0
    """How far records lie before their time, milliseconds: the result of a window belongs to its last instant."""

    lateness: int = 0
    """How far the watermark may have passed the instant at which a record is due before it is late, milliseconds."""

    in_time_from: int | None = None
    """Records of the inputs from this number on are never late: they take effect on what has not been applied yet."""

    def due(self) -> pl.Expr:
        """The watermark at which a record is applied. If the watermark is there already, the record is late."""
        return pl.col(self.time) + 1 - self.ahead

    @abstractmethod
    def apply(self, ready: pl.DataFrame, state: ShardState, progress: Progress) -> pl.DataFrame:
        """Applies records, which are in any order, maybe none; returns results, maybe without columns if empty."""

    def process(self, batch: pl.DataFrame, state: ShardState, progress: Progress) -> Results:
        """Sets late records apart and applies those that are due."""
        looped, late = None, None
        if batch.height:
            due = batch.select((self.due() + self.lateness).alias(DUE))[DUE]
            missed = due <= pl.Series(progress.passed(batch.height))
            if self.in_time_from is not None:
                missed &= batch[INPUT] < self.in_time_from
            if self.loops and INPUT in batch.columns:
                behind = batch[INPUT].is_in(self.loops) & (batch[self.time] < progress.before)
                at_once = batch.filter(behind).with_columns(pl.lit(progress.before).alias(self.time))
                batch, missed, looped = batch.filter(~behind), missed.filter(~behind), at_once
            if missed.any():
                late, batch = batch.filter(missed), batch.filter(~missed)
            if looped is not None and not self.instant:
                batch, looped = pl.concat([batch, looped]), None
        ready = Waiting(state).release(batch, self.due(), progress.now)
        if looped is not None and looped.height:
            ready = pl.concat([ready, looped], how="diagonal_relaxed") if ready.height else looped
        records = self.apply(ready, state, progress)
        return Results(records, late, StateCounts(keys=state.notes.get("keys"), timers=state.notes.get("timers")))

    def rescale(self, states: Rescaling) -> None:
        """Divides the records that wait, and the state of the operator."""
        states.log("held", _rows)
        self.rescale_own(states)

    @abstractmethod
    def rescale_own(self, states: Rescaling) -> None:
        """Divides the state of the operator itself, see `Processor.rescale`."""


def _rows(tables: Tables) -> int:
    return tables["records"].height
