"""The topology of a site as operators say it, what machines run on and depend on: reads its topic, and writes there."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from engine.spec.errors import NewnormalError
from pipelines.contracts.records import InferredPlacement, Placement
from pipelines.contracts.settings import Settings
from pipelines.query.control_topics import P, checked, inferred_placements, placements, write

COLUMNS = ("machine", "parent", "depends_on")
"""The columns of a file of the topology; it needs the first, and one of the others."""

_UNCHANGED = "nothing was written"


@dataclass(frozen=True)
class Place:
    """What is said of a machine; what is not said stays as it was.

    Attributes:
        runs_on: What it runs on, one at most; empty: nothing any more; ``None``: not said.
        depends_on: What else it depends on; ``None``: not said.
    """

    runs_on: tuple[str, ...] | None = None
    depends_on: tuple[str, ...] | None = None

    def after(self, before: Placement | None) -> tuple[str | None, tuple[str, ...]]:
        """What it runs on and depends on then, after what was known before."""
        known = before.parent if before else None
        parent = known if self.runs_on is None else next(iter(self.runs_on), None)
        more = self.depends_on if self.depends_on is not None else before.depends_on if before else ()
        return parent, tuple(sorted(set(more)))


NOWHERE = Place((), ())
"""A machine has no place any more."""


def topology(settings: Settings) -> list[Placement]:
    """The machines of which a person says where they are, sorted by what they run on and by name."""
    return _sorted(each for each in placements(settings).values() if each.above)


def inferred(settings: Settings) -> list[InferredPlacement]:
    """The machines of which telemetry tells where they are or what they are replicas of, likewise."""
    return _sorted(each for each in inferred_placements(settings).values() if each.above or each.workload)


def _sorted(placed: Iterable[P]) -> list[P]:
    return sorted(placed, key=lambda each: (each.parent or "", each.entity))


def place(settings: Settings, places: Mapping[str, Place], now: int) -> list[Placement]:
    """Says what machines run on and depend on; returns what was written, without what was known already.

    Args:
        settings: The settings, with the address of Kafka filled in.
        places: By machine.
        now: The present, epoch milliseconds.

    Raises:
        NewnormalError: ``PLACEMENT_INVALID`` for a wrong name, or if a machine would run on itself, even in several
            steps, or depend on itself; as `write`.
    """
    for name in {
        *places,
        *(machine for place in places.values() for machine in (*(place.runs_on or ()), *(place.depends_on or ()))),
    }:
        if "*" in name:
            what = f"{name} is a pattern, but a place is that of one machine"
            raise NewnormalError("PLACEMENT_INVALID", what, "topology", "names of machines without *", _UNCHANGED)
    placed = placements(settings)
    before = {name: (placement.parent, tuple(sorted(placement.depends_on))) for name, placement in placed.items()}
    after = {name: place.after(placed.get(name)) for name, place in places.items()}
    fresh = {name: place for name, place in after.items() if before.get(name, (None, ())) != place}
    for name, (_, more) in fresh.items():
        if name in more:
            what = f"{name} would depend on itself"
            raise NewnormalError("PLACEMENT_INVALID", what, "topology", "names of other machines", _UNCHANGED)
    parents = {name: parent for name, (parent, _) in (before | fresh).items()}
    _check_for_loops(parents, fresh)
    written = []
    for name, (parent, more) in fresh.items():
        was = placed.get(name)
        when = max(now, was.time + 1) if was else now
        content = {"entity": name, "parent": parent, "depends_on": list(more), "time": when}
        if was and was.parent != parent:
            content |= {"moved_from": was.parent}
        elif was and was.moved_from:  # it has not moved since
            content |= {"moved_from": was.moved_from, "moved": was.moved_at}
        written.append(checked(Placement, content, settings, now))
    if written:
        write(settings, *written)
    return written


def remove(settings: Settings, machines: Iterable[str], now: int) -> list[Placement]:
    """Takes the places of machines away; returns what was written.

    Raises:
        NewnormalError: ``TOPOLOGY_UNKNOWN`` if one has none; nothing is written then; as `write`.
    """
    named, known = list(machines), {each.entity for each in topology(settings)}
    if unknown := [name for name in named if name not in known]:
        what = f"{', '.join(unknown[:5])}: no such machine has a place"
        raise NewnormalError("TOPOLOGY_UNKNOWN", what, "topology", "a name that `topology list` shows", _UNCHANGED)
    return place(settings, dict.fromkeys(named, NOWHERE), now)


def from_csv(file: Path) -> dict[str, Place]:
    """Reads a file of the topology: what each machine runs on, and, one a line, what else it depends on.

    A column that the file does not have says nothing; an empty cell says that there is nothing.

    Raises:
        NewnormalError: ``TOPOLOGY_UNREADABLE`` if the file cannot be read, lacks a column, or says that a machine runs
            on two.
    """
    parents: dict[str, str] = {}
    needs: dict[str, dict[str, None]] = {}
    try:
        with file.open(encoding="utf-8-sig", newline="") as opened:
            rows = csv.DictReader(opened, strict=True)
            has = [name in (rows.fieldnames or ()) for name in COLUMNS]
            if not has[0] or not any(has[1:]):
                raise _unreadable(f"it has no column {COLUMNS[0] if not has[0] else COLUMNS[1]}", str(file))
            for row in rows:
                machine, parent, needed = ((row.get(name) or "").strip() for name in COLUMNS)
                where = f"{file}, line {rows.line_num}"
                if not machine:
                    raise _unreadable("it names no machine", where)
                if parents.setdefault(machine, parent) != parent:
                    raise _unreadable(f"it says another parent of {machine} than a line before it", where)
                needs.setdefault(machine, {}).update({needed: None} if needed else {})
    except (OSError, UnicodeError, csv.Error) as error:
        what = getattr(error, "strerror", None) or str(error)
        raise _unreadable(what, str(file)) from None
    return {
        name: Place(tuple(filter(None, [parent])) if has[1] else None, tuple(needs[name]) if has[2] else None)
        for name, parent in parents.items()
    }


def _check_for_loops(parents: Mapping[str, str | None], fresh: Iterable[str]) -> None:
    sound: set[str] = set()
    for name in fresh:
        path = [name]
        while (parent := parents.get(path[-1])) is not None and parent not in sound:
            if parent in path:
                chain = " on ".join([*path[path.index(parent) :], parent])
                what = f"a machine would run on itself: {chain}"
                raise NewnormalError("PLACEMENT_INVALID", what, "topology", "a parent that does not", _UNCHANGED)
            path.append(parent)
        sound.update(path)


def _unreadable(why: str, where: str) -> NewnormalError:
    accepted = f"CSV in UTF-8 with commas, and a first line that names {COLUMNS[0]}, and {' or '.join(COLUMNS[1:])}"
    return NewnormalError("TOPOLOGY_UNREADABLE", why, where, accepted, _UNCHANGED)
