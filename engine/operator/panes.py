"""The panes of a shard, kept like a log: a batch adds a part to a pane and reads none of those before.

A pane's parts are merged when its window closes, or when there are too many of them; so the cost of a batch follows
its records, not what the open panes hold already.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import polars as pl

from engine.operator.folds import SUMS
from engine.state import ShardState, Tables, pack, unpack

MOST_PARTS = 16
Merge = Callable[[Sequence[Tables]], Tables]


class PaneStore:
    """The panes of one batch: what is stored, what the batch adds, and what changed panes held before.

    State: segment ``pane/<start>/<part>`` holds some partials of the pane; the note ``panes`` how many parts there are,
    ``pane_keys`` the most keys in one of them.

    Args:
        state: The shard's.
        merge: Makes one set of tables of several.
    """

    def __init__(self, state: ShardState, merge: Merge) -> None:
        self.state, self.merge = state, merge
        self.parts: dict[int, int] = {int(start): n for start, n in state.notes.get("panes", {}).items()}
        self.keys: dict[int, int] = {int(start): n for start, n in state.notes.get("pane_keys", {}).items()}
        self.added: dict[int, list[Tables]] = {}
        self.merged: dict[int, Tables] = {}
        self.was: dict[int, Tables] = {}

    @property
    def starts(self) -> list[int]:
        """First instants of the panes, ascending."""
        return sorted({*self.parts, *self.added, *self.merged})

    def add(self, start: int, tables: Tables) -> None:
        """Adds to a pane without reading it."""
        self.added.setdefault(start, []).append(tables)
        if start in self.merged:
            self.merged[start] = self.merge([self.merged[start], tables])

    def get(self, start: int) -> Tables:
        """All tables of a pane; empty where it is not kept."""
        if start not in self.merged:
            stored = [self.state.get(_name(start, part)) for part in range(self.parts.get(start, 0))]
            pieces = [unpack(value) for value in stored if value is not None] + self.added.get(start, [])
            if not pieces:
                return {}
            self.merged[start] = self.merge(pieces) if len(pieces) > 1 else pieces[0]
        return self.merged[start]

    def put(self, start: int, tables: Tables) -> None:
        """Replaces the tables of a pane."""
        self.was.setdefault(start, self.get(start))
        self.merged[start] = tables
        self.added[start] = []

    def before(self, start: int) -> pl.DataFrame | None:
        """Partials of a pane as they were ahead of the batch."""
        return self.was.get(start, self.get(start)).get(SUMS)

    def save(self, expired: Callable[[int], bool], again: bool) -> None:
        """Writes what was added and forgets what expired.

        Args:
            expired: Whether a pane is not needed any more.
            again: Panes that were read will be so again soon: they are kept in one part.
        """
        for start in self.starts:
            n = self.parts.get(start, 0)
            if expired(start):
                self._remove(start, n)
                continue
            added = self.added.get(start)
            whole = start in self.was or (again and start in self.merged and n + len(added or ()) > 1)
            if whole or (added and n + 1 >= MOST_PARTS):
                tables = self.get(start)
                self._remove(start, n)
                self._write(start, 0, tables)
            elif added:
                self._write(start, n, added[0] if len(added) == 1 else self.merge(added))
        self.state.notes["panes"] = {str(start): n for start, n in self.parts.items()}
        self.state.notes["pane_keys"] = {str(start): n for start, n in self.keys.items() if start in self.parts}

    def most_keys(self) -> int:
        """Keys in the pane with the most; of a pane that is in several parts, those of its greatest part."""
        return max((n for start, n in self.keys.items() if start in self.parts), default=0)

    def _write(self, start: int, part: int, tables: Tables) -> None:
        self.state.put(_name(start, part), pack(tables))
        self.parts[start] = part + 1
        keys = tables[SUMS].height if SUMS in tables else 0
        self.keys[start] = max(keys, self.keys.get(start, 0)) if part else keys

    def _remove(self, start: int, parts: int) -> None:
        for part in range(parts):
            self.state.remove(_name(start, part))
        self.parts.pop(start, None)


def _name(start: int, part: int) -> str:
    return f"pane/{start}/{part}"
