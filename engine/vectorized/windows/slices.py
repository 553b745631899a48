"""The slices of a shard, kept like a log: a batch adds a part to a slice and reads none of those before.

A slice's parts are merged when its window closes, or when there are too many of them; so the cost of a batch follows
its records, not what the open slices hold already. Here all slices of a batch are rows of the same tables, told apart
by their column `PARTIAL`: a thousand sparse slices cost as much as one with as many rows.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence

import polars as pl

from engine.state.segments import ShardState, Tables, pack, unpack
from engine.vectorized.windows.folds import PARTIAL, SUMS, tables_by_name

MOST_PARTS = 16
Merge = Callable[[Sequence[Tables]], Tables]


class SliceStore:
    """The slices of one batch: what is stored, what the batch adds, and what changed slices held before.

    State: segment ``slice/<start>/<part>`` holds some partials of the slice; the note ``slices`` how many parts there
    are, ``slice_keys`` the most keys in one of them.

    Args:
        state: The shard's.
        merge: Makes one set of tables of several, slice by slice.
    """

    def __init__(self, state: ShardState, merge: Merge) -> None:
        self.state, self.merge = state, merge
        self.parts: dict[int, int] = {int(start): n for start, n in state.notes.get("slices", {}).items()}
        self.keys: dict[int, int] = {int(start): n for start, n in state.notes.get("slice_keys", {}).items()}
        self.added: Tables = {}
        self.fresh: set[int] = set()
        self.whole: Tables = {}
        self.read: set[int] = set()
        self.was: Tables = {}
        self.replaced: set[int] = set()

    @property
    def starts(self) -> list[int]:
        """First instants of the slices, ascending."""
        return sorted({*self.parts, *self.fresh, *self.replaced})

    def add(self, tables: Tables) -> None:
        """Adds to slices without reading them."""
        starts = _starts(tables)
        self.added = self.merge([self.added, tables]) if self.added else tables
        self.fresh |= starts
        if known := starts & self.read:
            self.whole = self.merge([self.whole, of_slices(tables, known)])

    def get(self, starts: Iterable[int]) -> Tables:
        """All tables of some slices; those that are not kept have no rows."""
        wanted = set(starts)
        missing = {start for start in wanted - self.read if start in self.parts or start in self.fresh}
        if missing:
            single = {start for start in missing if self.parts.get(start, 0) + (start in self.fresh) == 1}
            several = missing - single
            pieces = self._pieces(single)
            if several:
                pieces.append(self.merge(self._pieces(several)))
            self.whole = _joined([self.whole, *pieces])
            self.read |= missing
        return of_slices(self.whole, wanted) if self.read - wanted else self.whole

    def put(self, tables: Tables, starts: set[int]) -> None:
        """Replaces the tables of some slices."""
        self.was = _joined([self.was, self.get(starts - self.replaced)])
        self.whole = _joined([of_slices(self.whole, self.read - starts), tables])
        self.added = of_slices(self.added, self.fresh - starts)
        self.fresh -= starts
        self.read |= starts
        self.replaced |= starts

    def before(self, starts: Iterable[int]) -> pl.DataFrame | None:
        """Partials of some slices as they were ahead of the batch."""
        wanted = set(starts)
        was = of_slices(self.was, wanted & self.replaced)
        return _joined([self.get(wanted - self.replaced), was]).get(SUMS)

    def save(self, expired: Callable[[int], bool], again: bool) -> None:
        """Writes what was added and forgets what expired.

        Args:
            expired: Whether a slice is not needed any more.
            again: Slices that were read will be so again soon: they are kept in one part.
        """
        anew: set[int] = set()
        more: set[int] = set()
        for start in self.starts:
            n, fresh = self.parts.get(start, 0), start in self.fresh
            if expired(start):
                self._remove(start)
            elif start in self.replaced or (again and start in self.read and n + fresh > 1):
                anew.add(start)
            elif fresh:
                (anew if n + 1 >= MOST_PARTS else more).add(start)
        for start, tables in _by_slice(self.get(anew) if anew else {}, anew):
            self._remove(start)
            self._write(start, 0, tables)
        for start, tables in _by_slice(self.added, more):
            self._write(start, self.parts.get(start, 0), tables)
        self.state.notes["slices"] = {str(start): n for start, n in self.parts.items()}
        self.state.notes["slice_keys"] = {str(start): n for start, n in self.keys.items() if start in self.parts}

    def most_keys(self) -> int:
        """Keys in the slice with the most; of a slice that is in several parts, those of its greatest part."""
        return max((n for start, n in self.keys.items() if start in self.parts), default=0)

    def _pieces(self, starts: set[int]) -> list[Tables]:
        """What is stored of some slices, and what the batch adds to them."""
        pieces = []
        for start in starts:
            for part in range(self.parts.get(start, 0)):
                value = self.state.get(_name(start, part))
                if value is not None:
                    number = pl.lit(start, pl.Int64).alias(PARTIAL)
                    pieces.append({name: table.with_columns(number) for name, table in unpack(value).items()})
        return [*pieces, of_slices(self.added, starts & self.fresh)]

    def _write(self, start: int, part: int, tables: Tables) -> None:
        self.state.put(_name(start, part), pack(tables))
        self.parts[start] = part + 1
        keys = tables[SUMS].height if SUMS in tables else 0
        self.keys[start] = max(keys, self.keys.get(start, 0)) if part else keys

    def _remove(self, start: int) -> None:
        for part in range(self.parts.pop(start, 0)):
            self.state.remove(_name(start, part))


def of_slices(tables: Tables, starts: Collection[int]) -> Tables:
    """The rows of some slices; tables without any are left out."""
    wanted = pl.Series(sorted(starts), dtype=pl.Int64).implode()
    some = {name: table.filter(pl.col(PARTIAL).is_in(wanted)) for name, table in tables.items()} if len(starts) else {}
    return {name: table for name, table in some.items() if table.height}


def _starts(tables: Tables) -> set[int]:
    return {start for table in tables.values() for start in table[PARTIAL].unique().to_list()}


def _joined(parts: Sequence[Tables]) -> Tables:
    """Tables one below the other."""
    return {name: pl.concat(tables, how="diagonal_relaxed") for name, tables in tables_by_name(parts)}


def _by_slice(tables: Tables, starts: set[int]) -> Iterable[tuple[int, Tables]]:
    """The tables of each of some slices, ascending, without the column that tells them apart."""
    some = of_slices(tables, starts)
    parts = {name: table.partition_by(PARTIAL, as_dict=True, include_key=False) for name, table in some.items()}
    for start in sorted(starts):
        yield start, {name: by_slice[(start,)] for name, by_slice in parts.items() if (start,) in by_slice}


def _name(start: int, part: int) -> str:
    return f"slice/{start}/{part}"
