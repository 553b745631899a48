"""The correction journal: recently judged windows, the verdicts on them, and snapshots of the models' state.

With the journal, a late window is judged as if it had arrived on time. The state of a shard holds it in:

- log ``journal``: judged windows and announced verdicts; of several rows for a window the last applies. The mark of a
  part is the newest instant in it;
- segment ``revised``: the newest revision of each verdict that was revised;
- note ``history``: which snapshots there are (`Snapshots` holds them), and how far back the journal reaches.

The journal reaches back from the watermark by one to two times the horizon.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import polars as pl
from numpy.typing import NDArray

from engine.columns.tables import stacked
from engine.spec.duration import NEVER
from engine.state.part_log import Part, PartLog
from engine.state.rescaling import Rescaling
from engine.state.segments import ShardState, pack, unpack


class Snapshots(Protocol):
    """What the models were at some instants, epoch milliseconds."""

    def forget(self, time: int) -> None:
        """Removes what they were at an instant."""


IDENTITY = ("entity", "metric", "window_start", "window_end")
_MOST_PARTS = 64
_BY_SERIES = pl.col("entity").hash(0) ^ pl.col("metric").hash(1)
"""Rows of a part are sorted by series, because similar rows next to each other compress well."""

_APART = (*IDENTITY, "revision", "announced", "severity", "message", "details", "ingested")
"""Columns of verdicts that do not count as content."""


@dataclass
class JournalEntries:
    """Windows that were judged, and the verdicts on them.

    Attributes:
        inputs: The windows as they were judged, one row each.
        verdicts: A row per window: `IDENTITY`, ``revision`` of the last verdict, ``mark`` (hash of its content), and
            ``announced``, the end of the window with which the verdict was announced. This is later than the verdict's
            own window if the verdict was decided by a later window.
    """

    inputs: pl.DataFrame
    verdicts: pl.DataFrame


class CorrectionJournal:
    """The snapshots and the journal of one shard.

    Args:
        state: The state of the shard.
        horizon: How far behind the watermark a window can be judged again at least, milliseconds.
        since: The event time at which a new journal begins, epoch milliseconds.
        snapshots: Where the snapshots are; ``None``: nowhere.
    """

    def __init__(self, state: ShardState, horizon: int, since: int, snapshots: Snapshots | None = None) -> None:
        self.state, self.horizon, self.snapshots = state, horizon, snapshots
        models = state.get("models") if "history" not in state.notes else None
        self.notes = state.notes.setdefault("history", {"base": since, "snapshots": []})
        self.log = PartLog(state, "journal")
        if models:  # the state is of a version that had no journal
            self.state.put(f"snapshot/{since}", models)
            self.notes["snapshots"].append(since)

    @classmethod
    def rescale(cls, states: Rescaling, divide: Callable[[int, int], None]) -> None:
        """Divides the journal of all shards by machine.

        The new journal reaches back as far as those of all its sources do.

        Args:
            states: The states.
            divide: Gives a new shard the models of its machines at an instant, from the snapshots of its sources.
        """
        states.log("journal")
        states.segments("revised")
        for shard, state, sources in states.shards():
            notes = [source.notes["history"] for source in sources if "history" in source.notes]
            if not notes:
                continue
            times = sorted(set.intersection(*(set(each["snapshots"]) for each in notes)))
            base = max(each["base"] for each in notes)
            if any(each["snapshots"] for each in notes) and base not in times:
                base = min((time for time in times if time > base), default=base)
            state.notes["history"] = {"base": base, "snapshots": [time for time in times if time >= base]}
            for time in state.notes["history"]["snapshots"]:
                divide(shard, time)

    @property
    def base(self) -> int:
        """Windows that end after this instant (epoch milliseconds) can be judged again."""
        return int(self.notes["base"])

    def cuts(self, before: int, now: int) -> list[int]:
        """The instants in (before, now] at which to take a snapshot, multiples of the horizon; the last two suffice."""
        every = self.horizon
        first = max(before, now - 2 * every) // every + 1
        return [number * every for number in range(first, now // every + 1)]

    def keep(self, time: int) -> None:
        """Notes that there is a snapshot of an instant."""
        if time not in self.notes["snapshots"]:
            self.notes["snapshots"].append(time)

    def snapshot_before(self, instant: int) -> int:
        """The time of the newest snapshot before an instant; without one, the base (the beginning of the journal)."""
        return max((time for time in self.notes["snapshots"] if time < instant), default=self.base)

    def snapshots_after(self, time: int) -> list[int]:
        """The times of the snapshots after an instant."""
        return sorted(t for t in self.notes["snapshots"] if t > time)

    def write(self, inputs: pl.DataFrame, verdicts: pl.DataFrame) -> None:
        """Adds judged windows, and the verdicts on them; for the columns see `JournalEntries`."""
        if not inputs.height and not verdicts.height:
            return
        times = [frame[name] for frame, name in ((inputs, "window_end"), (verdicts, "announced")) if frame.height]
        ends = [int(column.to_numpy().max()) for column in times]
        ends += self.log.marks  # who reads a part reads what was written after it
        if len(self.log.parts) >= _MOST_PARTS:
            some = self.log.fewest_neighbours()
            # what is forgotten of a later part would no longer replace what an earlier one says of the same window
            before = self._read(some, self.base if some[0] == self.log.parts[0] else NEVER, None)
            self._put(some, before.inputs, before.verdicts, max(part.mark for part in some))
        again = verdicts.filter(pl.col("revision") > 0).select(*IDENTITY, "revision") if verdicts.height else verdicts
        if again.height:
            self._keep_revised(_last(pl.concat([self._revised(), again])))
        self._put([], inputs, verdicts, max(ends))

    def _put(self, parts: Sequence[Part], inputs: pl.DataFrame, verdicts: pl.DataFrame, mark: int) -> None:
        """Adds a part, in place of those given."""
        tables = {"inputs": inputs, "said": verdicts.rename({"announced": "at"}, strict=False)}
        in_order = {n: table.sort(_BY_SERIES, maintain_order=True) for n, table in tables.items() if table.height}
        self.log.replace(parts, in_order, mark, inputs.height + verdicts.height)

    def renumbered(self, verdicts: pl.DataFrame) -> pl.DataFrame:
        """Renumbers verdicts that revise an earlier one: how long after its window each is announced, milliseconds.

        That does not depend on how micro-batches were cut, and grows with what was known. So what a restored job writes
        replaces what was written before. It is more than the newest revision of the window in any case.
        """
        if not verdicts.height or not (verdicts["revision"] > 0).any():
            return verdicts
        newest = self._revised().rename({"revision": "_newest"})
        both = verdicts.join(newest, on=IDENTITY, how="left", maintain_order="left")
        following = pl.max_horizontal(pl.col("_newest").fill_null(0) + 1, pl.col("announced") - pl.col("window_end"))
        revised = pl.when(pl.col("revision") > 0).then(following).otherwise("revision")
        return both.with_columns(revision=revised).drop("_newest")

    def read(self, entities: Collection[str], after: int) -> JournalEntries:
        """The windows of some machines that end after an instant, and the verdicts announced after it."""
        parts = [part for part in self.log.parts if part.mark > after]
        return self._read(parts, max(after, self.base), entities)

    def forget(self, now: int, open_: pl.DataFrame) -> None:
        """Removes snapshots and windows that are no longer needed.

        Args:
            now: The watermark, epoch milliseconds.
            open_: `IDENTITY` of the windows that may still be revised although they lie before the base.
        """
        old = [time for time in self.notes["snapshots"] if time <= now - self.horizon]
        if not old:
            return
        self.notes["base"] = max(old)
        for time in old:
            if time < self.base:
                if self.snapshots:
                    self.snapshots.forget(time)
                self.notes["snapshots"].remove(time)
        self.log.forget([part for part in self.log.parts if part.mark <= self.base])
        revised = self._revised()
        if revised.height:
            late = revised.filter(pl.col("window_end") <= self.base).join(open_, on=IDENTITY, how="semi")
            self._keep_revised(pl.concat([late, revised.filter(pl.col("window_end") > self.base)]))

    def _revised(self) -> pl.DataFrame:
        stored = self.state.get("revised")
        schema = {"entity": pl.String, "metric": pl.String, **dict.fromkeys((*IDENTITY[2:], "revision"), pl.Int64)}
        return unpack(stored)["revised"] if stored else pl.DataFrame(schema=schema)

    def _keep_revised(self, revised: pl.DataFrame) -> None:
        if revised.height:
            self.state.put("revised", pack({"revised": revised}))
        elif self.state.get("revised"):
            self.state.remove("revised")

    def _read(self, parts: Sequence[Part], since: int, entities: Collection[str] | None) -> JournalEntries:
        tables = [self.log.read(part) for part in parts]
        # what was said last of a window holds, also if it was announced before the instant
        judged = _last(stacked(*(_of(each.get("inputs"), entities) for each in tables)))
        said = _last(stacked(*(_of(each.get("said"), entities) for each in tables)))
        said = said.rename({"at": "announced"}, strict=False)
        return JournalEntries(_after(judged, "window_end", since), _after(said, "announced", since))


def mark(verdicts: pl.DataFrame) -> pl.Series:
    """A 32-bit hash of the content of each verdict, without its identity, revision and texts.

    >>> row = {"kind": "anomaly", "typical": 1.0, "influencers": [{"key": "cpu", "value": 1.0}], "revision": 0}
    >>> other = row | {"influencers": [{"key": "mem", "value": 1.0}]}
    >>> marks = mark(pl.DataFrame([row, row | {"revision": 1}, row | {"typical": 2.0}, other]))
    >>> marks[0] == marks[1], marks[0] == marks[2], marks[0] == marks[3]
    (True, False, False)
    """
    content = np.zeros(verdicts.height, np.uint64)
    for name in verdicts.columns:
        if name not in _APART:
            content = _mixed(content, _content(verdicts[name]))
    return pl.Series("mark", (content >> np.uint64(32)).astype(np.uint32))


def _content(column: pl.Series) -> NDArray[np.uint64]:
    """A 64-bit number for each value of a column of any type; equal values have equal numbers."""
    if isinstance(column.dtype, pl.Struct):
        result = np.zeros(len(column), np.uint64)
        for field in column.struct.unnest():
            result = _mixed(result, _content(field))
        return result
    if isinstance(column.dtype, pl.List | pl.String) and column.null_count() == len(column):
        return np.zeros(len(column), np.uint64)
    if isinstance(column.dtype, pl.List):
        result = np.zeros(len(column), np.uint64)
        parts = pl.DataFrame({"row": pl.arange(len(column), eager=True), "part": column}).explode("part").drop_nulls()
        np.add.at(result, parts["row"].to_numpy(), _mixed(np.zeros(1, np.uint64), _content(parts["part"])))
        return result
    if column.dtype == pl.String:
        names = column.unique().drop_nulls()
        codes = pl.Series([zlib.crc32(name.encode()) + 1 for name in names], dtype=pl.UInt64)
        coded: NDArray[np.uint64] = column.replace_strict(names, codes, default=0, return_dtype=pl.UInt64).to_numpy()
        return coded
    numbers = column.cast(pl.Float64).fill_null(float("nan")).to_numpy() + 0.0
    return np.ascontiguousarray(numbers).view(np.uint64)


def _mixed(content: NDArray[np.uint64], more: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """One round of a multiplicative hash: splitmix64 (Steele, Lea, Flood 2014)."""
    mixed = (content ^ more) + np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))


def _of(table: pl.DataFrame | None, entities: Collection[str] | None) -> pl.DataFrame:
    if table is None:
        return pl.DataFrame()
    return table if entities is None else table.filter(pl.col("entity").is_in(list(entities)))


def _after(table: pl.DataFrame, time: str, instant: int) -> pl.DataFrame:
    return table.filter(pl.col(time) > instant) if table.height else table


def _last(table: pl.DataFrame) -> pl.DataFrame:
    return table.unique(IDENTITY, keep="last", maintain_order=True) if table.height else table
