"""Divides the state of the shards of a job anew among another number of shards, by key.

A key belongs to the shard that `engine.columns.partitioning.slots` gives for its first column. So the keys of a new
shard come from few of the old shards: from ``g`` shards to a multiple of ``g``, each new shard has one source.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import gcd
from typing import Any

import polars as pl

from engine.columns.partitioning import slots
from engine.state.part_log import PartLog
from engine.state.segments import ShardState, Tables, joined, pack, unpack


@dataclass(frozen=True)
class Rescaling:
    """The states of the old shards, those of the new ones, which are empty, and how keys move.

    Args:
        before: The states of the old shards.
        after: The states of the new shards.
        key: The first key column, which all tables with rows of keys have.
    """

    before: Sequence[ShardState]
    after: Sequence[ShardState]
    key: str

    def sources(self, shard: int) -> list[ShardState]:
        """The old shards whose keys may move to a new shard.

        >>> from engine.state.segments import DictSegments
        >>> old, new = ([ShardState(DictSegments()) for _ in range(n)] for n in (4, 2))
        >>> [old.index(state) for state in Rescaling(old, new, "key").sources(1)]
        [1, 3]
        """
        common = gcd(len(self.before), len(self.after))
        return list(self.before[shard % common :: common])

    def scope(self, name: str) -> Rescaling:
        """The same for one operator of a chain."""
        return Rescaling([s.scope(name) for s in self.before], [s.scope(name) for s in self.after], self.key)

    def mine(self, keys: pl.DataFrame, shard: int) -> pl.Series:
        """Which rows of a table belong to a new shard."""
        return pl.Series(slots(keys[self.key], len(self.after)) == shard, dtype=pl.Boolean)

    def of(self, tables: Tables, shard: int) -> Tables:
        """The rows of some tables that belong to a new shard; tables without such rows are left out."""
        own = {name: table.filter(self.mine(table, shard)) for name, table in tables.items() if table.height}
        return {name: table for name, table in own.items() if table.height}

    def segments(self, *names: str) -> None:
        """Moves the rows of segments whose tables all have the key."""
        for name in names:
            stored = [(state, value) for state in self.before if (value := state.get(name)) is not None]
            tables = {id(state): unpack(value) for state, value in stored}
            for shard, state in enumerate(self.after):
                parts = [self.of(tables[id(s)], shard) for s in self.sources(shard) if id(s) in tables]
                if whole := joined(parts):
                    state.put(name, pack(whole))

    def log(self, name: str, rows: Callable[[Tables], int] = lambda tables: 0) -> None:
        """Moves the rows of the parts of a log whose tables all have the key; marks stay.

        Args:
            name: Name of the log.
            rows: The size of a part, as the owner of the log counts it.
        """
        for source in self.before:
            log = PartLog(source, name)
            targets = [(n, PartLog(state, name)) for n, state in enumerate(self.after) if source in self.sources(n)]
            for part in log.parts:
                tables = log.read(part)
                for shard, target in targets:
                    if own := self.of(tables, shard):
                        target.append(own, part.mark, rows(own))

    def copies(self, *names: str) -> None:
        """Copies segments that are the same in all shards."""
        for shard, state in enumerate(self.after):
            for name in names:
                value = next((v for s in self.sources(shard) if (v := s.get(name)) is not None), None)
                if value is not None:
                    state.put(name, value)

    def same_log(self, name: str) -> None:
        """Copies a log that is the same in all shards, but for what some have read of it already."""
        for _, state, sources in self.shards():
            log, target = PartLog(sources[0], name), PartLog(state, name)
            for part in log.parts:
                target.append(log.read(part), part.mark, part.rows)

    def note(self, name: str, merged: Callable[[list[Any]], Any]) -> None:
        """Makes a note of each new shard from those of its sources that have it."""
        for shard, state in enumerate(self.after):
            notes = [source.notes[name] for source in self.sources(shard) if name in source.notes]
            if notes:
                state.notes[name] = merged(notes)

    def shards(self) -> Iterator[tuple[int, ShardState, list[ShardState]]]:
        """For each new shard its number, its state and its sources."""
        for shard, state in enumerate(self.after):
            yield shard, state, self.sources(shard)
