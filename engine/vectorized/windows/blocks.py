"""Merged partials of neighbouring slices: a window of a thousand slices is put together from some twenty blocks.

A block of level ``l`` holds `FAN_OUT` to the power of ``l`` slices, and begins at a multiple of its length: the blocks
are the inner nodes of a tree whose leaves are the slices. A window is a row of the longest blocks that lie in it. A
block is made of those below it when a window first needs it, so a slice is merged once for each level, and what a
micro-batch costs does not grow with the slices of the windows that it closes. A block holds nothing that its slices do
not hold: it can be removed at any time.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterator
from typing import NamedTuple

import polars as pl

from engine.state.part_log import PartLog
from engine.state.segments import ShardState, Tables
from engine.vectorized.windows.folds import PARTIAL, SAMPLES
from engine.vectorized.windows.slices import SliceStore, rows_of_keys
from engine.windows import Sliding

FAN_OUT = 8
FEWEST_SLICES = 2 * FAN_OUT
"""Windows of fewer slices are put together from the slices themselves."""
_NOTE = "blocks"


class Block(NamedTuple):
    """A place in the tree; level 0 is a slice.

    Attributes:
        level: How often slices were merged.
        start: Start of its first slice, epoch milliseconds.
    """

    level: int
    start: int


class Blocks:
    """The blocks of a shard during one micro-batch.

    State: the log ``blocks<level>`` of each level; the mark of a part is the start of its block. The note ``blocks``
    has the names of the partials: if the aggregates of the job change, the blocks are made anew.

    Args:
        state: The state of the shard.
        window: The windows.
        partials: Names of the partials of the job's aggregates.
    """

    def __init__(self, state: ShardState, window: Sliding, partials: list[str]) -> None:
        self.window = window
        if state.notes.get(_NOTE, partials) != partials:
            forget_blocks(state)
        state.notes[_NOTE] = partials
        self.levels = range(1, _levels(window) + 1)
        self.logs = {level: PartLog(state, f"{_NOTE}{level}") for level in self.levels}

    def changed(self, starts: Collection[int]) -> None:
        """Removes the blocks that hold one of these slices."""
        for level, log in self.logs.items():
            for start in {self.start(level, slice_start) for slice_start in starts}:
                log.forget(log.of(start))

    def expire(self, expired: Callable[[int], bool]) -> None:
        """Removes the blocks that no window needs any more, which are those whose first slice is not needed."""
        for log in self.logs.values():
            for start in filter(expired, log.marks):
                log.forget(log.of(start))

    def start(self, level: int, time: int) -> int:
        """Start of the block of a level that holds the slice with this start."""
        return time - (time - self.window.offset_ms) % self.length(level)

    def length(self, level: int) -> int:
        """Length of a block, milliseconds."""
        return self.window.slice_ms * int(FAN_OUT**level)


class BlockReader:
    """Reads what windows hold; makes the blocks that are not there yet.

    Args:
        blocks: The blocks, of which those of changed slices have been removed.
        slices: The slices.
        merge: Function that merges several sets of tables into one, by key and `PARTIAL`.
        keys: The keys that are wanted, a row each; ``None``: all.
    """

    def __init__(
        self,
        blocks: Blocks,
        slices: SliceStore,
        merge: Callable[[list[Tables]], Tables],
        keys: pl.DataFrame | None = None,
    ) -> None:
        self.blocks, self.slices, self.merge, self.keys = blocks, slices, merge, keys
        self.starts = slices.starts
        self.in_memory = slices.each_read()
        self.read: dict[Block, list[Tables]] = {}

    def of_window(self, end: int) -> Iterator[Tables]:
        """Sets of tables that together hold the partials of the window with this end; a key may be in several."""
        at = end - self.blocks.window.size_ms
        while at < end:
            level = self._longest(at, end)
            if (block := self._shortest(Block(level, at))) is not None:
                if block not in self.read:
                    self.read[block] = [self._wanted(tables) for tables in self._tables(block)]
                yield from self.read[block]
            at += self.blocks.length(level)

    def _longest(self, at: int, end: int) -> int:
        """The level of the longest block that begins at an instant and ends before another one or there."""
        fits = (
            level
            for level in reversed(self.blocks.levels)
            if self.blocks.start(level, at) == at and at + self.blocks.length(level) <= end
        )
        return next(fits, 0)

    def _shortest(self, block: Block) -> Block | None:
        """The slice of a block that holds one slice only; ``None`` if it holds none."""
        first = bisect_left(self.starts, block.start)
        number = bisect_left(self.starts, block.start + self.blocks.length(block.level)) - first
        return None if not number else Block(0, self.starts[first]) if number == 1 else block

    def _tables(self, block: Block) -> list[Tables]:
        """What a block holds: that of a slice may be several sets of tables, that of a block is one."""
        level, start = block
        if not level:
            cached = self.in_memory.get(start)
            pieces = self.slices.pieces({start}) if cached is None else [cached]
            return [{name: table for name, table in tables.items() if name != SAMPLES} for tables in pieces]
        log = self.blocks.logs[level]
        if stored := log.of(start):
            return [log.read(part) for part in stored]
        length = self.blocks.length(level - 1)
        below = (self._shortest(Block(level - 1, start + i * length)) for i in range(FAN_OUT))
        pieces = [tables for inner in below if inner is not None for tables in self._tables(inner)]
        number = pl.lit(start, pl.Int64).alias(PARTIAL)
        merged = self.merge([{name: t.with_columns(number) for name, t in tables.items()} for tables in pieces])
        log.append(merged, start, rows_of_keys(merged))
        return [merged]

    def _wanted(self, tables: Tables) -> Tables:
        if self.keys is None:
            return tables
        on = self.keys.columns
        own = {name: t.join(self.keys, on=on, how="semi", nulls_equal=True) for name, t in tables.items()}
        return {name: table for name, table in own.items() if table.height}


def forget_blocks(state: ShardState) -> None:
    """Removes all blocks of a state."""
    state.notes.pop(_NOTE, None)
    for name in [note for note in state.notes if note.startswith(_NOTE)]:
        log = PartLog(state, name.removesuffix("/"))
        log.forget(log.parts)
        del state.notes[name]


def _levels(window: Sliding) -> int:
    """The level of the longest blocks: as long as a window, or shorter."""
    level = 0
    while FAN_OUT ** (level + 1) <= window.slices_per_window:
        level += 1
    return level
