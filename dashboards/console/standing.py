"""What operators have said, what is in force, and who was told: rules, labels, the places of machines, messages."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from typing import Any

import polars as pl

from dashboards.console.actions import Actions
from dashboards.console.search import Document
from engine.columns.replicas import replicas_of
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
            return list(self._standing()["labels"]), self._missing()
        except NewnormalError as error:
            return [], error.code

    def rules(self) -> tuple[list[Document], str]:
        """The rules that are not removed, and why they are not known; the reason is empty if they are."""
        try:
            return list(self._standing()["rules"]), self._missing()
        except NewnormalError as error:
            return [], error.code

    def above(self, machine: str) -> list[str]:
        """What a machine runs on, and what that runs on: the nearest first; empty if it is not known."""
        try:
            parents = {place["host.name"]: place.get("parent") for place in self._standing()["placements"]}
        except NewnormalError:
            return []
        found: list[str] = []
        while (parent := parents.get(found[-1] if found else machine)) and parent not in (machine, *found):
            found.append(parent)
        return found

    def around(self, incident: Document, now: int) -> dict[str, Any]:
        """What is in force on the machines of an incident, and how these stand to each other.

        Returns:
            ``rules`` that name one of its machines (or all) and are in force now or were while it went on; ``labels``
            on its machines, the newest first; ``parents``, what each of its machines runs on; ``needs``, which of the
            others each depends on; ``moves``, placements of its machines from half an hour before it began on;
            ``acknowledged``, what was said of it, and ``told``, the messages on it, the oldest first; and ``missing``,
            why nothing is known, else empty.
        """
        machines = [machine["entity"] for machine in incident.get("machines") or ()]
        try:
            standing = self._standing()
        except NewnormalError as error:
            nothing: dict[str, Any] = {name: [] for name in ("rules", "labels", "moves", "acknowledged", "told")}
            return nothing | {"parents": {}, "needs": {}, "missing": error.code}
        start, end = incident["event.start"], incident.get("event.end") or now
        identity = incident["event.id"]
        rules = [rule for rule in standing["rules"] if _in_force(rule, start, end) and _on(rule, machines)]
        labels = [label for label in standing["labels"] if label["host.name"] in machines]
        placed = [place for place in standing["placements"] if place["host.name"] in machines]
        acknowledged = [one for one in standing.get("acknowledgements", ()) if one["event.id"] == identity]
        messages = [message for message in standing.get("told", ()) if identity in message["incidents"]]
        went = [place for place in placed if place.get("moved_from")]
        moves = [place for place in went if start - _BEFORE <= (place.get("moved") or place["@timestamp"]) <= end]
        return {
            "rules": rules[:_MOST], "labels": sorted(labels, key=lambda label: -label["event.created"])[:_MOST],
            "parents": {place["host.name"]: place["parent"] for place in placed if place.get("parent")},
            "needs": _needs(machines, standing["placements"]),
            "moves": moves[:_MOST], "acknowledged": acknowledged[-_MOST:], "told": messages[-_MOST:],
            "missing": self._missing(),
        }  # fmt: skip

    def _missing(self) -> str:
        return "" if self._actions else "this console reads no topics"

    def _standing(self) -> dict[str, list[Document]]:
        if self._actions is None:
            return {"rules": [], "labels": [], "placements": []}
        with self._lock:
            changes = self._changes  # what is said while the topics are read may not be in what they give
            if changes != self._kept.changes or time.monotonic() - self._kept.at > _KEPT_SECONDS:
                self._kept = _Kept(time.monotonic(), self._actions.in_force(), changes)
            return self._kept.in_force or {}


def _needs(machines: list[str], placements: list[Document]) -> dict[str, list[str]]:
    """For each machine the others on which it or its workload depends; a workload stands for its replicas."""
    of = {place["host.name"]: place for place in placements}
    workloads = {name: of.get(name, {}).get("workload") or replicas_of(name) for name in machines}
    found = {}
    for machine in machines:
        own = [of.get(name or "", {}).get("depends_on", ()) for name in (machine, workloads[machine])]
        needed = {name for names in own for name in names}
        others = [each for each in machines if each != machine and (each in needed or workloads[each] in needed)]
        if others:
            found[machine] = others
    return found


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
