"""A user's own logic as a function of one record and the state of its key: simple but slow; the state is JSON.

Each record costs a call into Python and two passes through JSON. Where that is too slow, write a `Logic` over columns.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import orjson

from engine.columns.arrays import objects
from engine.operators.turn import NO_TIMER, Logic, Turn
from engine.spec.operator import SIDE, Row


def aside(output: str, **columns: Any) -> Row:
    """A result of a `KeyCallback` that goes to a side output of the job instead of the main one.

    Args:
        output: Name of the side output, as ``write(..., side={name: ...})`` gives it.
        columns: The columns of the result, without key and time; these are added.
    """
    return {SIDE: output, **columns}


@dataclass
class Timer:
    """The one timer of a key.

    Attributes:
        now: Event time of the call, epoch milliseconds.
        at: The instant at which `KeyCallback.on_timer` is called; ``None`` if it is not set.
    """

    now: int
    at: int | None = None


class KeyCallback(ABC):
    """Base of a user's own callback, which is called for each record of a key, in event-time order."""

    @abstractmethod
    def on_record(self, record: Row, state: Row, timer: Timer) -> Iterable[Row]:
        """Processes a record, may change the state, and returns results without key and time; these are added."""

    def on_timer(self, state: Row, timer: Timer) -> Iterable[Row]:
        """Called when the timer is due."""
        return ()


@dataclass(frozen=True)
class EachKey(Logic):
    """A `KeyCallback` as a `Logic`: ``Process(EachKey(MyCallback(), ("value",)))``.

    Args:
        callback: The callback.
        names: The columns of a record that the callback needs.
    """

    callback: KeyCallback
    names: tuple[str, ...]

    state = {"json": "{}"}  # noqa: RUF012

    def needs(self) -> tuple[str, ...]:
        return self.names

    def on_records(self, turn: Turn) -> None:
        columns = {name: turn.exact(name) for name in self.names}
        self._each(turn, [{name: values[i] for name, values in columns.items()} for i in range(len(turn))])

    def on_timers(self, turn: Turn) -> None:
        self._each(turn, [None] * len(turn))

    def _each(self, turn: Turn, records: list[Row] | list[None]) -> None:
        rows, results = [], []
        for i, record in enumerate(records):
            state = orjson.loads(turn.state["json"][i])
            due = int(turn.timer[i])
            timer = Timer(int(turn.time[i]), None if due == NO_TIMER else due)
            if record is None:
                emitted = list(self.callback.on_timer(state, timer))
            else:
                emitted = list(self.callback.on_record(record, state, timer))
            turn.state["json"][i] = orjson.dumps(state).decode()
            turn.timer[i] = NO_TIMER if timer.at is None else timer.at
            rows += [i] * len(emitted)
            results += emitted
        names = dict.fromkeys(name for result in results for name in result)
        columns = {name: objects([result.get(name) for result in results]) for name in names}
        if rows:
            at = np.array(rows)
            turn.emitted.append((at, turn.time[at], columns))
