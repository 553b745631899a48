"""Windowed aggregation of one shard from slices: a window is put together when the watermark passes its end.

State: the slices (see `SliceStore`); of windows of many slices the blocks that these were merged to (see `Blocks`);
segment ``late/<end>`` holds the revisions of windows that late records changed.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from engine.aggregates.aggregate import COUNT
from engine.aggregates.rate import ELAPSED, INCREASE
from engine.columns.packing import grouped
from engine.operators.windows import WindowAggregate
from engine.spec.operator import Progress
from engine.state.rescaling import Rescaling
from engine.state.segments import ShardState, Tables, joined, pack, tables_by_name, unpack
from engine.vectorized.processor import Processor, Results, StateCounts
from engine.vectorized.windows.allowed_lateness import closed_until
from engine.vectorized.windows.blocks import FEWEST_SLICES, BlockReader, Blocks
from engine.vectorized.windows.folds import PARTIAL, SUMS, Folds
from engine.vectorized.windows.rates import RATES, Rates
from engine.vectorized.windows.slices import SliceStore, of_slices, rescale_slices

END, PANE, TIMING, REVISION = "window_end", "pane", "timing", "revision"
_WINDOWS_AT_ONCE = 32
"""So many windows of many slices are put together at once: what is in memory follows these, not all that are due."""
_NEW = "__new"
_SUMMED_RATES = {name: pl.col(name).sum() for name in (INCREASE, ELAPSED)}


class SlicedWindows(Processor):
    """The logic of a `WindowAggregate` whose windows share slices; the results equal those of `GeneralWindows`."""

    def __init__(self, config: WindowAggregate) -> None:
        self.config = config
        self.window = config.sliding
        self.slice_ms, self.key = self.window.slice_ms, list(config.key)
        self.by = [*self.key, PARTIAL]
        self.lateness = int(config.allowed_lateness)
        self.folds = Folds(config.aggregates)
        self.rate_name, rate = next(iter(self.folds.rates.items()), ("", None))
        self.rates = Rates(rate, self.key, self.window, config.ahead) if rate else None
        self.many = self.window.slices_per_window >= FEWEST_SLICES
        self.retention = self.window.size_ms + self.lateness + (self.rates.reach if self.rates else 0)

    def rescale(self, states: Rescaling) -> None:
        """Divides the slices, the revisions of late windows and, for rates, the last samples."""
        rescale_slices(states)

    def process(self, batch: pl.DataFrame, state: ShardState, progress: Progress) -> Results:
        """Adds the batch to its slices; returns the windows that the watermark closed or late records changed."""
        slices = SliceStore(state, self._merged)
        if not batch.width:  # the operator before this one in a chain had no results
            batch = pl.DataFrame(schema={self.config.time: pl.Int64, **dict.fromkeys(self.key, pl.String)})
        batch = batch.with_columns(self.window.slice_start(pl.col(self.config.time) - self.config.ahead).alias(PARTIAL))
        too_late = pl.col(PARTIAL) + self.window.size_ms <= closed_until(progress.before, self.lateness)
        late = batch.filter(too_late).drop(PARTIAL)
        batch = batch.filter(~too_late) if late.height else batch
        new = self._add(batch, slices, progress.before) if batch.height else None
        closed = [p for p in slices.starts if progress.before < p + self.slice_ms <= progress.now]
        changed = new.select(self.by) if new is not None else None
        if self.rates:
            self.rates.carry(changed[PARTIAL].unique().to_list() if changed is not None else [], slices, state)
            self.rates.close(closed, slices, state)
            changed = self.rates.revise(changed, slices, progress.before)
        blocks = self._blocks(slices, closed, state) if self.many else None
        ends = sorted({e for p in slices.starts for e in self.window.ends_between(p, progress.before, progress.now)})
        reader = BlockReader(blocks, slices, self._merged) if blocks and ends else None
        pieces = [self._first(group, slices, reader) for group in self._portions(ends)]
        if new is not None and changed is not None:
            reader = BlockReader(blocks, slices, self._merged, changed.select(self.key).unique()) if blocks else None
            pieces.append(self._revise(changed, new, slices, reader, state, progress.before))
        self._forget(slices, state, progress.now)
        held = StateCounts(slices.most_keys(), self._coming(slices, progress.now))
        return Results(pl.concat(pieces, how="diagonal_relaxed") if pieces else pl.DataFrame(), late, held)

    def _coming(self, slices: SliceStore, now: int) -> int:
        """The number of windows over stored slices that end after the watermark."""
        count, reached = 0, self.window.slice_start(now)
        for start in sorted(set(slices.log.marks)):
            count += max(0, start + self.window.size_ms - max(start, reached)) // self.slice_ms
            reached = max(reached, start + self.window.size_ms)
        return count

    def _add(self, batch: pl.DataFrame, slices: SliceStore, before: int) -> pl.DataFrame | None:
        """Adds the partials of the batch to their slices; returns keys and slices whose windows have fired before."""
        new = self.folds.lift(batch, self.key)
        fired = {start for start in new[SUMS][PARTIAL].unique().to_list() if start + self.slice_ms <= before}
        if not fired:
            slices.add(new)
            return None
        late = of_slices(new, fired)
        slices.put(self._merged([slices.get(fired), late]), fired)
        if rest := of_slices(new, set(new[SUMS][PARTIAL].unique().to_list()) - fired):
            slices.add(rest)
        return late[SUMS].select(*self.by, pl.col(COUNT).alias(_NEW))

    def _blocks(self, slices: SliceStore, closed: list[int], state: ShardState) -> Blocks:
        """The blocks without those of changed slices; slices that have just closed are made one part each."""
        slices.get(closed)
        blocks = Blocks(state, self.window, self.folds.names)
        blocks.changed(slices.fresh | slices.replaced)
        return blocks

    def _portions(self, ends: list[int]) -> list[list[int]]:
        """Divides windows into those that are put together at once."""
        most = _WINDOWS_AT_ONCE if self.window.slices_per_window > _WINDOWS_AT_ONCE else max(1, len(ends))
        return [ends[at : at + most] for at in range(0, len(ends), most)]

    def _merged(self, parts: Sequence[Tables]) -> Tables:
        merged = {}
        for name, tables in tables_by_name(parts):
            rows = pl.concat(tables, how="diagonal_relaxed")
            if len(tables) > 1:
                rates = name == RATES
                rows = grouped(rows, self.by, _SUMMED_RATES) if rates else self.folds.merge(name, rows, self.by)
            merged[name] = rows
        return merged

    def _forget(self, slices: SliceStore, state: ShardState, now: int) -> None:
        def expired(start: int) -> bool:
            return start + self.retention <= now

        slices.save(expired, again=self.window.slices_per_window > 1)
        if self.many:
            Blocks(state, self.window, self.folds.names).expire(expired)
        late = state.notes.get("late", [])
        for end in filter(expired, late):
            state.remove(f"late/{end}")
        state.notes["late"] = [end for end in late if not expired(end)]

    def _revise(
        self,
        changed: pl.DataFrame,
        new: pl.DataFrame,
        slices: SliceStore,
        reader: BlockReader | None,
        state: ShardState,
        before: int,
    ) -> pl.DataFrame:
        """The new revisions of windows over changed keys and slices whose allowed lateness is not over.

        Args:
            changed: The keys and slices.
            new: How many late records each key and slice has got.
            slices: The slices.
            reader: Reader of these keys, for windows of many slices.
            state: The state of the shard.
            before: The watermark before the micro-batch.
        """
        due = (pl.col(END) <= before) & (pl.col(END) > closed_until(before, self.lateness))
        windows = self._explode(changed).filter(due).select(*self.key, END).unique()
        by = [*self.key, END]
        added = self._explode(new).filter(due).group_by(by).agg(pl.col(_NEW).sum())
        pieces = []
        for ends in self._portions(sorted(windows[END].unique().to_list())):
            revised = windows.filter(pl.col(END).is_in(ends))
            results = self._windows(ends, revised, slices, reader).join(added, on=by, how="left", nulls_equal=True)
            earlier = self._revisions(revised, state)
            reported = (pl.col(COUNT) > pl.col(_NEW).fill_null(0)).cast(pl.Int64)
            revision = (pl.col(REVISION).fill_null(0) + reported).alias(REVISION)
            results = results.join(earlier, on=by, how="left", nulls_equal=True).with_columns(revision)
            self._keep_revisions(earlier, results.select(*by, REVISION), state)
            late = pl.lit("late").alias(TIMING)
            pieces.append(results.with_columns(pl.col(REVISION).alias(PANE), late).drop(COUNT, _NEW))
        return pl.concat(pieces, how="vertical_relaxed") if pieces else pl.DataFrame()

    def _revisions(self, windows: pl.DataFrame, state: ShardState) -> pl.DataFrame:
        """The revisions that late records have brought before, in all windows with one of these ends."""
        earlier = [windows.clear().with_columns(pl.lit(0, pl.Int64).alias(REVISION))]
        for end in windows[END].unique().to_list():
            if stored := state.get(f"late/{end}"):
                earlier.append(unpack(stored)[REVISION].with_columns(pl.lit(end, pl.Int64).alias(END)))
        return pl.concat(earlier, how="diagonal_relaxed")

    def _keep_revisions(self, earlier: pl.DataFrame, new: pl.DataFrame, state: ShardState) -> None:
        others = earlier.join(new, on=[*self.key, END], how="anti", nulls_equal=True)
        kept = pl.concat([others, new.select(others.columns)], how="vertical_relaxed")
        for (end,), revisions in kept.partition_by(END, as_dict=True, include_key=False).items():
            state.put(f"late/{end}", pack({REVISION: revisions}))
        state.notes["late"] = sorted({*state.notes.get("late", []), *kept[END].to_list()})

    def _explode(self, table: pl.DataFrame) -> pl.DataFrame:
        """For each row, one row for each window that contains its slice."""
        steps = range(1, self.window.slices_per_window + 1)
        return pl.concat([table.with_columns((pl.col(PARTIAL) + i * self.slice_ms).alias(END)) for i in steps])

    def _within(self, table: pl.DataFrame, ends: list[int]) -> pl.DataFrame:
        """For each row, one row for each of the windows with these ends that contains its slice.

        Few windows take their rows out of the table, so that the cost follows what they hold; otherwise the rows go to
        all of their windows.
        """
        if len(ends) >= self.window.slices_per_window:
            return self._explode(table).filter(pl.col(END).is_in(pl.Series(ends, dtype=pl.Int64).implode()))
        start = pl.col(PARTIAL)
        inside = (table.filter((start >= end - self.window.size_ms) & (start < end)) for end in ends)
        return pl.concat(
            [some.with_columns(pl.lit(e, pl.Int64).alias(END)) for e, some in zip(ends, inside, strict=True)]
        )

    def _over(self, ends: list[int], slices: SliceStore, reader: BlockReader | None) -> Tables:
        """What the windows with these ends hold; the column `END` says which window a row belongs to."""
        if reader is None:
            tables = slices.get(p for p in slices.starts if ends[0] - self.window.size_ms <= p < ends[-1])
            return {name: self._within(table, ends) for name, table in tables.items()}
        parts = []
        for end in ends:
            window = pl.lit(end, pl.Int64).alias(END)
            for tables in reader.of_window(end):
                parts.append({name: table.with_columns(window) for name, table in tables.items()})
        return joined(parts)

    def _windows(
        self, ends: list[int], only: pl.DataFrame | None, slices: SliceStore, reader: BlockReader | None
    ) -> pl.DataFrame:
        """Results of the windows with these ends, of all keys or of those in ``only``, with their number of records."""
        tables, by = self._over(ends, slices, reader), [*self.key, END]
        if only is not None:
            tables = {name: t.join(only, on=by, how="semi", nulls_equal=True) for name, t in tables.items()}
        sums = tables[SUMS]
        several = self.window.slices_per_window > 1
        sums = self.folds.merge(SUMS, sums, by) if several else self.folds.complete(sums, by)
        if self.rates:
            none = sums.select(*by, pl.lit(None, pl.Float64).alias(INCREASE), pl.lit(None, pl.Int64).alias(ELAPSED))
            totals = grouped(tables[RATES], by, _SUMMED_RATES) if RATES in tables else none.clear()
            sums = sums.join(totals, on=by, how="left", nulls_equal=True)
        result = sums.select(
            *self.key,
            (pl.col(END) - self.window.size_ms).alias("window_start"),
            END,
            *self.folds.finished(),
            *([self.rates.finish().alias(self.rate_name)] if self.rates else []),
            COUNT,
        )
        read = {name: tables[name] for name in self.folds.tables if name in tables}
        return self.folds.with_tables(result, read, by).sort(END, *self.key)

    def _first(self, ends: list[int], slices: SliceStore, reader: BlockReader | None) -> pl.DataFrame:
        zero, timing = pl.lit(0, pl.Int64), pl.lit("on_time").alias(TIMING)
        results = self._windows(ends, None, slices, reader).drop(COUNT)
        return results.with_columns(zero.alias(REVISION), zero.alias(PANE), timing)
