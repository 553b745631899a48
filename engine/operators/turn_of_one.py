"""Calls a `Logic`, which is written for arrays, with arrays of length one: one record or timer of one key."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from engine.columns.arrays import Values, objects
from engine.operators.turn import Logic, Turn
from engine.spec.operator import Row


@dataclass(frozen=True)
class Called:
    """The effects of one turn of a logic on one key.

    Attributes:
        state: State of the key after the turn.
        timer: Instant of the key's timer after the turn; `engine.operators.turn.NO_TIMER` if none is set.
        emitted: Event time and columns of each result.
        forwarded: For each call of `Turn.forward`, the record with the added columns.
    """

    state: Row
    timer: int
    emitted: list[tuple[int, Row]]
    forwarded: list[Row]


def one_turn(logic: Logic, now: int, state: Row, timer: int, record: Row | None) -> Called:
    """Calls a logic with one record, or, without one, with a timer that is due.

    Args:
        logic: The logic.
        now: Event time of the record or timer, epoch milliseconds.
        state: The key's state before.
        timer: The instant of the key's timer before.
        record: The record.
    """
    arrays = {name: _one(value) for name, value in state.items()}
    column = None if record is None else (lambda name: _one(record[name]))
    exact = None if record is None else (lambda name: objects([record[name]]))
    turn = Turn(np.array([now]), arrays, np.array([timer]), column, exact)
    (logic.on_timers if record is None else logic.on_records)(turn)
    emitted = [
        (int(times[i]), {name: _value(values, i) for name, values in columns.items()})
        for rows, times, columns in turn.emitted
        for i in range(len(rows))
    ]
    added = [{name: _value(values, 0) for name, values in columns.items()} for _, columns in turn.forwarded]
    kept = {name: values.tolist()[0] for name, values in turn.state.items()}
    return Called(kept, int(turn.timer[0]), emitted, [(record or {}) | columns for columns in added])


def _one(value: object) -> Values:
    return np.array([value]) if isinstance(value, bool | int | float) else np.array([value], object)


def _value(column: Values, row: int) -> object:
    value = column.tolist()[row]
    return None if isinstance(value, float) and math.isnan(value) else value
