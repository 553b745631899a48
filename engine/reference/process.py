"""The meaning of a `Process`: the user's logic is called with one record, or one timer, at a time."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from engine.operators.process import Process
from engine.operators.turn import NO_TIMER, Turn
from engine.reference.ordered import OrderedReference
from engine.spec.duration import END_OF_TIME, NEVER
from engine.spec.operator import Key, Progress, Row


@dataclass
class Kept:
    """What is known of one key."""

    state: Row
    timer: int = NO_TIMER
    last: int = NEVER
    results: list[Row] = field(default_factory=list)


class ProcessReference(OrderedReference):
    """The meaning of a `Process`: the logic is called with one record, or one timer, at a time.

    * A timer is due before the first record at or after its instant, or when the watermark reaches it.
    * A key is forgotten when nothing came for `idle_after`; timers up to then fire first, later ones never.
    * At the end of all input each key's timer fires once; those set then do not.
    """

    def __init__(self, config: Process) -> None:
        super().__init__(config)
        self.logic, self.idle = config.logic, config.idle_ms
        self.kept: dict[Key, Kept] = {}

    def apply(self, ready: list[Row], progress: Progress) -> list[Row]:
        results: list[Row] = []
        for record in ready:
            key, now = self.key_of(record), int(record[self.time])
            kept = self.kept.get(key) or self.fresh()
            results += self.fire(key, kept, now)
            if self.expiry(kept) <= now:
                kept = self.fresh()
            self.kept[key] = kept
            results += self.call(key, kept, now, record)
            kept.last = now
        for key, kept in list(self.kept.items()):
            results += self.fire(key, kept, progress.now)
            if self.expiry(kept) <= progress.now:
                del self.kept[key]
        return results

    def fresh(self) -> Kept:
        return Kept(dict(self.logic.columns()))

    def expiry(self, kept: Kept) -> int:
        return kept.last + self.idle if self.idle and kept.last != NEVER else END_OF_TIME + 1

    def fire(self, key: Key, kept: Kept, until: int) -> list[Row]:
        results: list[Row] = []
        while kept.timer != NO_TIMER and kept.timer <= min(until, self.expiry(kept)):
            due, kept.timer = kept.timer, NO_TIMER
            results += self.call(key, kept, due, None)
            if until == END_OF_TIME:
                break
        return results

    def call(self, key: Key, kept: Kept, now: int, record: Row | None) -> list[Row]:
        """The logic on arrays of length one."""
        state = {name: _one(value) for name, value in kept.state.items()}
        column = None if record is None else (lambda name: _one(record[name]))
        turn = Turn(np.array([now]), state, np.array([kept.timer]), column)
        (self.logic.on_timers if record is None else self.logic.on_records)(turn)
        kept.state = {name: values.tolist()[0] for name, values in turn.state.items()}
        kept.timer = max(int(turn.timer[0]), now + 1)
        named = dict(zip(self.key, key, strict=True))
        emitted = [
            named | {self.time: int(times[i])} | {n: _value(c, i) for n, c in columns.items()}
            for rows, times, columns in turn.emitted
            for i in range(len(rows))
        ]
        forwarded = [(record or {}) | {n: _value(c, 0) for n, c in columns.items()} for _, columns in turn.forwarded]
        return forwarded + emitted


def _one(value: object) -> np.ndarray:
    if isinstance(value, bool | int | float):
        return np.array([value])
    return np.array([value], object)


def _value(column: np.ndarray, row: int) -> object:
    value = column.tolist()[row]
    return None if isinstance(value, float) and math.isnan(value) else value
