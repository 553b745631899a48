"""Runs a `Logic` over the records of many keys: rounds, timers, and keys that expire."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np
import polars as pl

from engine.columns.arrays import Ints, Values, objects
from engine.columns.rounds import in_order, rounds
from engine.operators.turn import NO_TIMER, Logic, Turn, series
from engine.spec.duration import END_OF_TIME, NEVER
from engine.spec.operator import Progress
from engine.state.key_table import KeyTable
from engine.state.rescaling import Rescaling
from engine.state.segments import ShardState

TIMER, LAST = "__timer", "__last"


class Sequences:
    """One logic over all keys of a shard.

    State: segment ``keys`` holds a row for each key; ``keys/<part>`` holds later changes if the table is large.

    Args:
        logic: The logic.
        key: The key columns.
        time: The event-time column.
        idle_ms: A key without a record for so many milliseconds is forgotten; 0: never.
    """

    def __init__(self, logic: Logic, key: Sequence[str], time: str, idle_ms: int = 0) -> None:
        self.logic, self.key, self.time, self.idle_ms = logic, list(key), time, idle_ms
        self.defaults = {**logic.columns(), TIMER: NO_TIMER, LAST: NEVER}

    def run(self, ready: pl.DataFrame, state: ShardState, progress: Progress) -> tuple[pl.DataFrame, pl.DataFrame]:
        """Applies records and due timers.

        Returns:
            The forwarded records and the emitted results; frames without columns if there are none.
        """
        if not ready.height and state.notes.get("due", END_OF_TIME) > progress.now:
            return pl.DataFrame(), pl.DataFrame()
        self.table = KeyTable.load(self.key, self.defaults, state)
        self.forwarded: list[pl.DataFrame] = []
        self.emitted: list[tuple[Ints, pl.DataFrame]] = []
        if ready.height:
            self._records(*in_order(ready, self.table.rows(ready), self.time))
        timer, last = self.table.columns[TIMER], self.table.columns[LAST]
        due = np.minimum(progress.now, self._expiry(last)) if self.idle_ms else np.full(len(timer), progress.now)
        self._fire(np.arange(len(timer)), due, again=progress.now < END_OF_TIME)
        emitted = self._results()
        if self.idle_ms:
            self.table.keep(self._expiry(self.table.columns[LAST]) > progress.now)
        self._save(state)
        forwarded = pl.concat(self.forwarded, how="diagonal_relaxed") if self.forwarded else pl.DataFrame()
        return forwarded, emitted

    def rescale(self, states: Rescaling) -> None:
        """Divides the rows of the keys."""
        for shard, state, sources in states.shards():
            tables = [KeyTable.load(self.key, self.defaults, source) for source in sources]
            parts = [(table, states.mine(table.keys, shard)) for table in tables if table.keys is not None]
            self.table = KeyTable.joined(self.key, self.defaults, parts)
            if self.table.height:
                self._save(state)

    def _save(self, state: ShardState) -> None:
        self.table.save(state)
        state.notes["keys"] = self.table.height
        timer, last = self.table.columns[TIMER], self.table.columns[LAST]
        state.notes["timers"] = int((timer != NO_TIMER).sum())
        ends = [timer.min(initial=END_OF_TIME)]
        if self.idle_ms:
            ends.append(self._expiry(last).min(initial=END_OF_TIME))
        state.notes["due"] = int(min(ends))

    def _expiry(self, last: Ints) -> Ints:
        return np.where(last == NEVER, END_OF_TIME, np.minimum(last, END_OF_TIME - self.idle_ms) + self.idle_ms)

    def _records(self, ordered: pl.DataFrame, codes: Ints) -> None:
        times = ordered[self.time].to_numpy()

        @cache
        def column(name: str) -> Values:
            values = ordered[name]
            if values.dtype.is_numeric() or values.dtype == pl.Boolean:
                return values.to_numpy()
            return exact(name)

        @cache
        def exact(name: str) -> Values:
            if name not in ordered.columns and name in self.logic.needs():  # records that an earlier version held back
                return np.full(ordered.height, None, object)
            return objects(ordered[name].to_list())

        for at in rounds(codes):
            rows, now = codes[at], times[at]
            last = self.table.columns[LAST]
            self._fire(rows, np.minimum(now, self._expiry(last[rows])) if self.idle_ms else now)
            if self.idle_ms:
                self.table.reset(rows[self._expiry(last[rows]) <= now])
            shown = (lambda name, at=at, of=of: of(name)[at] for of in (column, exact))
            turn = Turn(now, *self._state(rows), *shown)
            self.logic.on_records(turn)
            self._take(rows, turn)
            last[rows] = now
            for places, more in turn.forwarded:
                columns = [series(c).alias(name) for name, c in more.items()]
                self.forwarded.append(ordered[at[places]].with_columns(columns))

    def _fire(self, rows: Ints, until: Ints, again: bool = True) -> None:
        """Fires the due timers of some rows; ``again``: also timers that are set by these calls."""
        while True:
            timer = self.table.columns[TIMER]
            due = (timer[rows] <= until) & (timer[rows] != NO_TIMER)
            if not due.any():
                return
            rows, until = rows[due], until[due]
            now = timer[rows].copy()
            timer[rows] = NO_TIMER
            turn = Turn(now, *self._state(rows))
            self.logic.on_timers(turn)
            self._take(rows, turn)
            if not again:
                return

    def _state(self, rows: Ints) -> tuple[dict[str, Values], Ints]:
        columns = self.table.columns
        return {name: columns[name][rows] for name in self.logic.columns()}, columns[TIMER][rows]

    def _take(self, rows: Ints, turn: Turn) -> None:
        self.table.touch(rows)
        for name, values in turn.state.items():
            self.table.columns[name][rows] = values
        self.table.columns[TIMER][rows] = np.maximum(turn.timer, turn.time + 1)
        for places, times, columns in turn.emitted:
            results = {name: series(c) for name, c in columns.items()}
            self.emitted.append((rows[places], pl.DataFrame({self.time: times, **results})))

    def _results(self) -> pl.DataFrame:
        if not self.emitted or self.table.keys is None:
            return pl.DataFrame()
        results = pl.concat([frame for _, frame in self.emitted], how="diagonal_relaxed")
        keys = self.table.keys[np.concatenate([rows for rows, _ in self.emitted])]
        return pl.concat([keys, results], how="horizontal")
