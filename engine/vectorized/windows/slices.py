"""The slices of a shard, kept like a log: a micro-batch adds a part to a slice and reads none of the earlier parts.

The parts of a slice are merged when its window closes, or when there are too many. So the cost of a micro-batch follows
its records, not what the open slices hold already. All slices of a micro-batch are rows of the same tables,
distinguished by the column `PARTIAL`: a thousand sparse slices cost as much as one with as many rows.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence

import polars as pl

from engine.state.part_log import PartLog
from engine.state.rescaling import Rescaling
from engine.state.segments import ShardState, Tables, joined
from engine.vectorized.windows.folds import PARTIAL, SUMS

MOST_PARTS = 16
Merge = Callable[[Sequence[Tables]], Tables]


class SliceStore:
    """The slices during one micro-batch: the stored ones, and what the batch adds.

    State: the log ``slices``. The mark of a part is the start of its slice, its number of rows is that of its keys.

    Args:
        state: The state of the shard.
        merge: Function that merges several sets of tables into one, slice by slice.
    """

    def __init__(self, state: ShardState, merge: Merge) -> None:
        self.log, self.merge = PartLog(state, "slices"), merge
        self.added: Tables = {}
        self.fresh: set[int] = set()
        self.whole: Tables = {}
        self.read: set[int] = set()
        self.replaced: set[int] = set()

    @property
    def starts(self) -> list[int]:
        """The starts of the slices, ascending."""
        return sorted({*self.log.marks, *self.fresh, *self.replaced})

    def add(self, tables: Tables) -> None:
        """Adds to slices without reading them."""
        starts = _starts(tables)
        self.added = self.merge([self.added, tables]) if self.added else tables
        self.fresh |= starts
        if read := starts & self.read:
            self.whole = self.merge([self.whole, of_slices(tables, read)])

    def get(self, starts: Iterable[int]) -> Tables:
        """All tables of some slices; slices that do not exist have no rows."""
        asked = set(starts)
        missing = {start for start in asked - self.read if self.log.count(start) or start in self.fresh}
        if missing:
            single = {start for start in missing if self.log.count(start) + (start in self.fresh) == 1}
            several = missing - single
            pieces = self.pieces(single)
            if several:
                pieces.append(self.merge(self.pieces(several)))
            self.whole = joined([self.whole, *pieces])
            self.read |= missing
        return of_slices(self.whole, asked) if self.read - asked else self.whole

    def put(self, tables: Tables, starts: set[int]) -> None:
        """Replaces the tables of some slices."""
        self.whole = joined([of_slices(self.whole, self.read - starts), tables])
        self.added = of_slices(self.added, self.fresh - starts)
        self.fresh -= starts
        self.read |= starts
        self.replaced |= starts

    def each_read(self) -> dict[int, Tables]:
        """The tables of each slice that has been read or replaced in this micro-batch, by its start."""
        return dict(_by_slice(self.whole, self.read))

    def pieces(self, starts: set[int]) -> list[Tables]:
        """The stored tables of some slices as they are, and what the batch adds to them."""
        pieces = []
        for start in starts:
            number = pl.lit(start, pl.Int64).alias(PARTIAL)
            for tables in map(self.log.read, self.log.of(start)):
                pieces.append({name: table.with_columns(number) for name, table in tables.items()})
        return [*pieces, of_slices(self.added, starts & self.fresh)]

    def save(self, expired: Callable[[int], bool], again: bool) -> None:
        """Stores what was added, and removes expired slices.

        Args:
            expired: Function that says whether a slice, given by its start, is not needed any more.
            again: Whether slices that were read will soon be read again; they are then stored as one part.
        """
        anew: set[int] = set()
        more: set[int] = set()
        for start in self.starts:
            n, fresh = self.log.count(start), start in self.fresh
            if expired(start):
                self.log.forget(self.log.of(start))
            elif start in self.replaced or (again and start in self.read and n + fresh > 1):
                anew.add(start)
            elif fresh:
                (anew if n + 1 >= MOST_PARTS else more).add(start)
        for start, tables in _by_slice(self.get(anew) if anew else {}, anew):
            self.log.replace(self.log.of(start), tables, start, rows_of_keys(tables))
        for start, tables in _by_slice(self.added, more):
            self.log.append(tables, start, rows_of_keys(tables))

    def most_keys(self) -> int:
        """The number of keys in the largest slice; for a slice in several parts, that of its largest part."""
        return self.log.most_rows


def rescale_slices(states: Rescaling) -> None:
    """Divides the slices of all shards by key, with the revisions of late windows and the last samples of rates."""
    states.log("slices", rows_of_keys)
    states.note("late", lambda notes: sorted({end for ends in notes for end in ends}))
    ends = {end for state in states.before for end in state.notes.get("late", [])}
    states.segments("carry", *(f"late/{end}" for end in sorted(ends)))


def rows_of_keys(tables: Tables) -> int:
    """The number of keys in a slice, which is the size of a part of the log."""
    return tables[SUMS].height if SUMS in tables else 0


def of_slices(tables: Tables, starts: Collection[int]) -> Tables:
    """The rows of some slices; tables without such rows are left out."""
    slices = pl.Series(sorted(starts), dtype=pl.Int64).implode()
    own = {name: table.filter(pl.col(PARTIAL).is_in(slices)) for name, table in tables.items()} if len(starts) else {}
    return {name: table for name, table in own.items() if table.height}


def _starts(tables: Tables) -> set[int]:
    return {start for table in tables.values() for start in table[PARTIAL].unique().to_list()}


def _by_slice(tables: Tables, starts: set[int]) -> Iterable[tuple[int, Tables]]:
    """The tables of each of some slices, ascending, without the column `PARTIAL`."""
    own = of_slices(tables, starts)
    parts = {name: table.partition_by(PARTIAL, as_dict=True, include_key=False) for name, table in own.items()}
    for start in sorted(starts):
        yield start, {name: by_slice[(start,)] for name, by_slice in parts.items() if (start,) in by_slice}
