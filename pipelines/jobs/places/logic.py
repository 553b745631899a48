"""The last place of each machine, and what was done to it, from what telemetry says of it again and again.

A pure function of the sightings of a machine in event-time order, so neither micro-batches nor shards matter.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import orjson

from engine.columns.arrays import Default, objects
from engine.operators.turn import NO_TIMER, Logic, Turn
from pipelines.contracts.records.change import id_of
from pipelines.contracts.records.site_messages import MOST_DEPENDENCIES
from pipelines.formats.placements.facts import SLOT
from pipelines.jobs.places.conditions import WORDS, Conditions, Told

DAY = 86_400_000
SETTLED = 120_000
"""A value that is said again within so many milliseconds stands: of two sources that contradict each other the first
counts, and not each by turns. One that is no longer said gives way, from when the other was first said."""
SEEN = 3
"""In so many slots of time a call must have been seen to count: one may be a mistake of a person or a scan of ports."""
AGAIN = DAY
"""What does not change is written again after so many milliseconds, as the topic forgets what is old."""


CHANGES = "changes"
"""The name of the side output of changes."""
_SOURCE = "kube-state-metrics"
_SAID = ("entity", "parent", "workload", "callee", "condition", "seen")


class LastPlace(Logic):
    """Keeps the place and the conditions of each machine; emits the place when it has changed, and what was done to it.

    Args:
        forget: A machine of which nothing is said for so many milliseconds has no place any more.
    """

    state: ClassVar[Mapping[str, Default]] = {
        "parent": "", "parent_at": 0, "next": "", "next_at": 0, "moved_from": "", "moved": 0,
        "workload": "", "workload_at": 0, "calls": "", "seen": 0, "written": "", "written_at": 0, "conditions": "",
    }  # fmt: skip

    def __init__(self, forget: int) -> None:
        self.forget = forget

    def needs(self) -> Sequence[str]:
        return _SAID

    def on_records(self, turn: Turn) -> None:
        said = zip(*map(turn.exact, _SAID), strict=True)
        done: dict[int, Told] = {}
        for i, (entity, parent, workload, callee, condition, seen) in enumerate(said):
            now = int(turn.time[i])
            place = _Place(turn.state, i)
            place["seen"] = now
            if parent:
                _on(place, parent, now)
            if workload and (workload == place["workload"] or now - place["workload_at"] >= SETTLED):
                place["workload"], place["workload_at"] = workload, now
            if callee:
                place["calls"] = _with(place["calls"], callee, now if seen is None else seen)
            if condition:
                conditions = Conditions.of(place["conditions"])
                if told := conditions.take(entity, condition, seen, now):
                    done[i] = told
                place["conditions"] = conditions.text()
            turn.timer[i] = self._timer(place, now)
        _tell(turn, done)

    def on_timers(self, turn: Turn) -> None:
        rows: list[dict[str, Any]] = []
        done: dict[int, Told] = {}
        for i, at in enumerate(turn.time.tolist()):
            place = _Place(turn.state, i)
            if place["conditions"]:
                conditions = Conditions.of(place["conditions"])
                if told := conditions.lapse(at):
                    done[i] = told
                place["conditions"] = conditions.text()
            gone = at - place["seen"] >= self.forget
            place["calls"] = "" if gone else _without_old(place["calls"], at)
            row = {} if gone else _content(place)
            text = orjson.dumps(row).decode() if any(row.values()) else ""
            writes = text != place["written"] or (text != "" and at - place["written_at"] >= AGAIN)
            rows.append({**_NOWHERE, **row, "writes": writes})
            if writes:
                place["written"], place["written_at"] = text, at
            turn.timer[i] = NO_TIMER if gone else self._timer(place, at)
        columns = {name: objects([row[name] for row in rows]) for name in _NOWHERE}
        turn.emit(columns, np.array([row["writes"] for row in rows], np.bool_))
        _tell(turn, done)

    def _timer(self, place: _Place, now: int) -> int:
        """When something is to be written or forgotten: at the end of this instant if what is known has changed."""
        content = _content(place)
        text = orjson.dumps(content).decode() if any(content.values()) else ""
        if text != place["written"]:
            return now + 1
        ends = [last + DAY for _, last in _calls(place["calls"]).values()]
        again = [place["written_at"] + AGAIN] if text and place["seen"] > place["written_at"] else []
        conditions = [Conditions.of(place["conditions"]).timer] if place["conditions"] else []
        return int(min([place["seen"] + self.forget, *ends, *again, *conditions]))


def _tell(turn: Turn, done: Mapping[int, Told]) -> None:
    """Emits the changes of some rows of a turn, each with the id that it has in whatever replay."""
    if not done:
        return
    where, at = np.zeros(len(turn), np.bool_), turn.time.copy()
    names = ("id", "kind", "message", "machines", "source")
    columns = {name: np.full(len(turn), None, object) for name in names}
    for i, (entity, kind, time) in done.items():
        where[i], at[i] = True, time
        one = (id_of(f"{_SOURCE}/{kind}/{entity}/{time}"), kind, f"{entity} {WORDS[kind]}", [entity], _SOURCE)
        for name, value in zip(names, one, strict=True):
            columns[name][i] = value
    turn.emit(columns, where, at, to=CHANGES)


class _Place:
    """The state of one machine."""

    def __init__(self, state: Mapping[str, Any], row: int) -> None:
        self._state, self._row = state, row

    def __getitem__(self, name: str) -> Any:
        value = self._state[name][self._row]
        return value.item() if isinstance(value, np.generic) else value

    def __setitem__(self, name: str, value: Any) -> None:
        self._state[name][self._row] = value


_NOWHERE: dict[str, Any] = {"parent": None, "workload": None, "depends_on": [], "moved_from": None, "moved": None}


def _content(place: _Place) -> dict[str, Any]:
    """What is written of a place, but for its time."""
    counted = sorted(name for name, (count, _) in _calls(place["calls"]).items() if count >= SEEN)
    own = (place["parent"], place["workload"])
    return {
        "parent": place["parent"] or None,
        "workload": place["workload"] or None,
        "depends_on": [name for name in counted if name not in own],
        "moved_from": place["moved_from"] or None,
        "moved": place["moved"] or None,
    }


def _on(place: _Place, parent: str, now: int) -> None:
    """Takes in what a machine is said to run on."""
    if parent == place["parent"] or not place["parent"]:
        place["parent"], place["parent_at"], place["next"] = parent, now, ""
        return
    if parent != place["next"]:
        place["next"], place["next_at"] = parent, now
    if now - place["parent_at"] >= SETTLED:
        place["moved_from"], place["moved"] = place["parent"], place["next_at"]
        place["parent"], place["parent_at"], place["next"] = parent, now, ""


def _calls(text: str) -> dict[str, list[int]]:
    """What a machine calls: of each callee in how many slots that was seen, `SEEN` at most, and when last."""
    found: dict[str, list[int]] = orjson.loads(text) if text else {}
    return found


def _with(text: str, callee: str, now: int) -> str:
    calls = _calls(text)
    count, last = calls.get(callee, (0, -1))
    calls[callee] = [count if abs(now - last) < SLOT else min(count + 1, SEEN), max(now, last)]
    if len(calls) > MOST_DEPENDENCIES:
        oldest = min(calls, key=lambda name: (calls[name][1], calls[name][0], name))
        del calls[oldest]
    return orjson.dumps(calls).decode()


def _without_old(text: str, now: int) -> str:
    calls = {name: each for name, each in _calls(text).items() if now - each[1] < DAY}
    return orjson.dumps(calls).decode() if calls else ""
