"""The entries for the last state of each series: the state, places among abnormal and filling series, and counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import orjson

from pipelines.contracts.records.novelty import ALARM_KINDS
from pipelines.query.view.database import Database
from pipelines.query.view.keys import ABNORMAL, FULL, STATE, descending

OPEN, UNUSUAL, GONE = "open_incidents", "abnormal", "gone"
"""Names in the counts beside the kinds: series with an open incident, abnormal series; in place of a kind: those that
are no longer expected."""


@dataclass(frozen=True)
class StateMessage:
    """A message of `detector.state`.

    Args:
        partition: Its partition.
        value: Its value; ``None``: a tombstone.

    Raises:
        ValueError, KeyError, TypeError: If it is none.
    """

    partition: int
    value: bytes | None

    def __post_init__(self) -> None:
        if state := self.state:
            _counted(state), _places(state, b"")

    @cached_property
    def state(self) -> dict[str, Any] | None:
        """The `SeriesState` by its JSON names; ``None``: a tombstone."""
        return dict(orjson.loads(self.value)) if self.value else None


def take_states(
    database: Database,
    messages: Mapping[bytes, StateMessage],
    counts: Mapping[int, Counter[str]],
    puts: dict[bytes, bytes],
    gone: set[bytes],
) -> None:
    """Adds the entries for the last message of each of some series.

    Args:
        database: The database, for the states so far.
        messages: The last message of each, by the series' names as a key.
        counts: The counts of each partition; changed.
        puts: Gets the entries to write.
        gone: Gets the keys to delete.
    """
    stored = database.get_many([STATE + series for series in messages])
    for (series, message), old in zip(messages.items(), stored, strict=True):
        own = counts[message.partition]
        if old:
            before = orjson.loads(old)
            own.subtract(_counted(before))
            gone.update(_places(before, series))
        if not (state := message.state) or not message.value:
            gone.add(STATE + series)
            continue
        own.update(_counted(state))
        puts[STATE + series] = message.value
        for place in _places(state, series):
            gone.discard(place)
            puts[place] = STATE + series


def total(counts: Mapping[str, int]) -> dict[str, int]:
    """How many series there are, by kind of their last state, and how many of them are abnormal or have an incident.

    >>> total({"normal": 2, "anomaly": 1, "abnormal": 1})
    {'series': 3, 'abnormal': 1, 'open_incidents': 0, 'anomaly': 1, 'normal': 2}
    """
    kinds = {name: number for name, number in sorted(counts.items()) if number and name not in (OPEN, UNUSUAL)}
    return {"series": sum(kinds.values()), UNUSUAL: counts.get(UNUSUAL, 0), OPEN: counts.get(OPEN, 0), **kinds}


def _is_gone(state: dict[str, Any]) -> bool:
    """Whether a series or machine has sent nothing for so long that it is no longer expected."""
    return state["kind"] == "absence" and state.get("incident.state") == "closed"


def _is_abnormal(state: dict[str, Any]) -> bool:
    news = state["kind"] in ALARM_KINDS and not _is_gone(state)
    return news or state.get("incident.state") == "open"


def _places(state: dict[str, Any], series: bytes) -> list[bytes]:
    """The keys of a series among the abnormal ones, and among those that will be full, the next first."""
    places = [ABNORMAL + descending(float(state["record_score"])) + series] if _is_abnormal(state) else []
    if (median := state.get("full_median")) is not None:
        places.append(FULL + int(median).to_bytes(8, "big") + series)
    return places


def _counted(state: dict[str, Any]) -> list[str]:
    more = [OPEN] if state.get("incident.state") == "open" else []
    return [GONE if _is_gone(state) else state["kind"], *more, *([UNUSUAL] if _is_abnormal(state) else [])]
