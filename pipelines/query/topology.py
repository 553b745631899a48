"""The topology of a site, as operators say it: which machine runs on which. Read from its topic, and written there."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping
from pathlib import Path

from engine.spec.errors import NewnormalError
from pipelines.contracts.records import Placement
from pipelines.contracts.settings import Settings
from pipelines.query.control_topics import checked, placements, write

COLUMNS = ("machine", "parent")
"""The columns of a file of the topology."""

_UNCHANGED = "nothing was written"


def topology(settings: Settings) -> list[Placement]:
    """The machines that have a place, sorted by what they run on and by name."""
    placed = [each for each in placements(settings).values() if each.parent]
    return sorted(placed, key=lambda each: (each.parent or "", each.entity))


def place(settings: Settings, parents: Mapping[str, str | None], now: int) -> list[Placement]:
    """Says on which machine others run; returns what was written, without what was known already.

    Args:
        settings: The settings, with the address of Kafka filled in.
        parents: For each machine what it runs on; ``None``: it has no place any more.
        now: The present, epoch milliseconds.

    Raises:
        NewnormalError: ``PLACEMENT_INVALID`` for a wrong name, or if a machine would run on itself, even in several
            steps; as `write`.
    """
    for name in {*parents, *parents.values()}:
        if name and "*" in name:
            what = f"{name} is a pattern, but a place is that of one machine"
            raise NewnormalError("PLACEMENT_INVALID", what, "topology", "names of machines without *", _UNCHANGED)
    known = placements(settings)
    before = {name: each.parent for name, each in known.items()}
    fresh = {name: parent for name, parent in parents.items() if before.get(name) != parent}
    _check_for_loops(before | fresh, fresh)
    made = []
    for name, parent in fresh.items():
        when = max(now, known[name].time + 1) if name in known else now
        content = {"entity": name, "parent": parent, "moved_from": before.get(name), "time": when}
        made.append(checked(Placement, content, settings, now))
    if made:
        write(settings, *made)
    return made


def remove(settings: Settings, machines: Iterable[str], now: int) -> list[Placement]:
    """Takes the places of machines away; returns what was written.

    Raises:
        NewnormalError: ``TOPOLOGY_UNKNOWN`` if one has none; nothing is written then; as `write`.
    """
    named, known = list(machines), {each.entity for each in topology(settings)}
    if unknown := [name for name in named if name not in known]:
        what = f"{', '.join(unknown[:5])}: no such machine has a place"
        raise NewnormalError("TOPOLOGY_UNKNOWN", what, "topology", "a name that `topology list` shows", _UNCHANGED)
    return place(settings, dict.fromkeys(named), now)


def from_csv(file: Path) -> dict[str, str | None]:
    """Reads a file of the topology: for each machine what it runs on; ``None`` where the file has no parent.

    Raises:
        NewnormalError: ``TOPOLOGY_UNREADABLE`` if the file cannot be read, lacks a column, or says two things of one
            machine.
    """
    found: dict[str, str | None] = {}
    try:
        with file.open(encoding="utf-8-sig", newline="") as opened:
            rows = csv.DictReader(opened, strict=True)
            if missing := [name for name in COLUMNS if name not in (rows.fieldnames or ())]:
                raise _unreadable(f"it has no column {missing[0]}", str(file))
            for row in rows:
                machine, parent = ((row[name] or "").strip() for name in COLUMNS)
                where = f"{file}, line {rows.line_num}"
                if not machine:
                    raise _unreadable("it names no machine", where)
                if found.setdefault(machine, parent or None) != (parent or None):
                    raise _unreadable(f"it says another parent of {machine} than a line before it", where)
    except (OSError, UnicodeError, csv.Error) as error:
        what = getattr(error, "strerror", None) or str(error)
        raise _unreadable(what, str(file)) from None
    return found


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


def _unreadable(what: str, where: str) -> NewnormalError:
    accepted = f"CSV in UTF-8 with commas, and a first line that names the columns {' and '.join(COLUMNS)}"
    return NewnormalError("TOPOLOGY_UNREADABLE", what, where, accepted, _UNCHANGED)
