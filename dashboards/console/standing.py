"""What operators have said, what is in force, and who was told: rules, labels, the places of machines, messages."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from typing import Any

import polars as pl

from dashboards.console.actions import Actions
from dashboards.console.search import Document
from engine.spec.errors import NewnormalError
from pipelines.contracts.globs import matches

_KEPT_SECONDS = 15.0
_BEFORE = 1_800_000
"""How long before an incident a move of a machine may be a reason of it, milliseconds."""

_MOST = 20


@dataclass
class _Kept:
    at: float = -_KEPT_SECONDS
    in_force: dict[str, list[Document]] | None = None
    changes: int = 0


class Remembered:
    """Asks at most once in some seconds, one at a time.

    Args:
        actions: Reads what is in force; ``None``: nobody does.
    """

    def __init__(self, actions: Actions | None) -> None:
        self._actions = actions
        self._lock, self._kept = threading.Lock(), _Kept()
        self._changes = 0

    def forget(self) -> None:
        """Has the next question read again, as an operator has just said something."""
        self._changes += 1

    def labels(self) -> tuple[list[Document], str]:
        """All labels, and why they are not known; the reason is empty if they are."""
        try:
            return list(self._known()["labels"]), self._missing()
        except NewnormalError as error:
            return [], error.code

    def around(self, incident: Document, now: int) -> dict[str, Any]:
        """What is in force on the machines of an incident, and how these stand to each other.

        Returns:
            ``rules`` that name one of its machines (or all) and are in force now or were while it went on; ``labels``
            on its machines, the newest first; ``parents``, what each of its machines runs on; ``needs``, which of the
            others each depends on; ``moves``, placements of its machines from half an hour before it began on;
            ``acknowledged``, what was said of it, and ``told``, the messages on it, the oldest first; and ``missing``,
            why nothing is known, else empty.
        """
        machines = [each["entity"] for each in incident.get("machines") or ()]
        try:
            known = self._known()
        except NewnormalError as error:
            nothing: dict[str, Any] = {name: [] for name in ("rules", "labels", "moves", "acknowledged", "told")}
            return nothing | {"parents": {}, "needs": {}, "missing": error.code}
        start, end = incident["event.start"], incident.get("event.end") or now
        rules = [each for each in known["rules"] if _in_force(each, start, end) and _on(each, machines)]
        labels = [each for each in known["labels"] if each["host.name"] in machines]
        placed = [each for each in known["placements"] if each["host.name"] in machines]
        said = [each for each in known.get("acknowledgements", ()) if each["event.id"] == incident["event.id"]]
        told = [each for each in known.get("told", ()) if incident["event.id"] in each["incidents"]]
        went = [each for each in placed if each.get("moved_from")]
        moves = [each for each in went if start - _BEFORE <= (each.get("moved") or each["@timestamp"]) <= end]
        return {
            "rules": rules[:_MOST], "labels": sorted(labels, key=lambda each: -each["event.created"])[:_MOST],
            "parents": {each["host.name"]: each["parent"] for each in placed if each.get("parent")},
            "needs": {
                each["host.name"]: some
                for each in placed
                if (some := [name for name in each.get("depends_on", ()) if name in machines])
            },
            "moves": moves[:_MOST], "acknowledged": said[-_MOST:], "told": told[-_MOST:],
            "missing": self._missing(),
        }  # fmt: skip

    def _missing(self) -> str:
        return "" if self._actions else "this console reads no topics"

    def _known(self) -> dict[str, list[Document]]:
        if self._actions is None:
            return {"rules": [], "labels": [], "placements": []}
        with self._lock:
            changes = self._changes  # what is said while the topics are read may not be in what they give
            if changes != self._kept.changes or time.monotonic() - self._kept.at > _KEPT_SECONDS:
                self._kept = _Kept(time.monotonic(), self._actions.in_force(), changes)
            return self._kept.in_force or {}


def _on(rule: Document, machines: list[str]) -> bool:
    """Whether a rule names one of some machines."""
    return bool(machines) and bool(matches(rule.get("host.name", "*"), pl.Series(machines)).any())


def _in_force(rule: Document, start: int, end: int) -> bool:
    """Whether a rule is in force at some time from ``start`` to ``end``, epoch milliseconds.

    >>> _in_force({"@timestamp": 5, "event.end": 9}, 9, 20), _in_force({"@timestamp": 5}, 9, 20)
    (False, True)
    """
    begin = max(rule["@timestamp"], rule.get("event.start") or 0)
    return begin <= end and (rule.get("event.end") is None or rule["event.end"] > start)
