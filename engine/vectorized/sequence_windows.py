"""Assigns each record to its count window or delta window."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from engine.columns.arrays import Ints
from engine.operators.sequence_windows import Mask, SequenceWindows
from engine.operators.turn import NO_TIMER, Logic, Turn
from engine.spec.duration import END_OF_TIME
from engine.vectorized.windows.folds import PARTIAL


@dataclass(frozen=True)
class Assign(Logic):
    """Forwards each record with the number of its window in `PARTIAL`, and emits each window that closes."""

    windows: SequenceWindows

    state = {"open": False, "n": 0, "number": -1, "first": float("nan"), "start": 0, "last": 0}  # noqa: RUF012

    def on_records(self, turn: Turn) -> None:
        state = turn.state
        broken = state["open"] & self.windows.breaks(turn)
        self._close(turn, broken, turn.time)
        fresh = ~state["open"]
        state["number"][fresh] += 1
        state["n"][fresh], state["first"][fresh] = 0, np.nan
        state["start"][fresh], state["open"][fresh] = turn.time[fresh], True
        timeout = self.windows.timeout_ms
        turn.timer[fresh] = turn.time[fresh] + timeout if timeout else END_OF_TIME - 1
        state["n"] += 1
        state["last"] = turn.time.copy()
        state["first"] = np.where(np.isnan(state["first"]), self.windows.value(turn), state["first"])
        turn.forward(**{PARTIAL: state["number"]})
        full = self.windows.full(state["n"])
        self._close(turn, full, turn.time + 1)
        turn.timer[full] = NO_TIMER

    def on_timers(self, turn: Turn) -> None:
        end = np.where(turn.time == END_OF_TIME - 1, turn.state["last"] + 1, turn.time)
        self._close(turn, turn.state["open"].copy(), end)

    def _close(self, turn: Turn, where: Mask, end: Ints) -> None:
        state = turn.state
        turn.emit({PARTIAL: state["number"], "window_start": state["start"], "window_end": end}, where)
        state["open"][where] = False
