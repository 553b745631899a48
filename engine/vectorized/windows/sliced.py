"""Windowed aggregation of one shard from slices: a window is put together when the watermark passes its end.

State: the slices (see `SliceStore`); segment ``late/<end>`` holds the revisions of windows that late records changed.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from engine.columns.packing import grouped
from engine.operators.windows import WindowAggregate
from engine.spec.operator import Progress
from engine.state.rescaling import Rescaling
from engine.state.segments import ShardState, Tables, pack, unpack
from engine.vectorized.processor import Processor, Results, StateCounts
from engine.vectorized.windows.allowed_lateness import closed_until
from engine.vectorized.windows.folds import PARTIAL, SUMS, Folds, tables_by_name
from engine.vectorized.windows.rates import ELAPSED, INCREASE, RATES, Rates
from engine.vectorized.windows.slices import SliceStore, of_slices, rescale_slices

END, PANE, TIMING, REVISION = "window_end", "pane", "timing", "revision"
_WINDOWS_AT_ONCE = 32
"""So many windows of many slices are put together at once: what is in memory follows these, not all that are due."""
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
        self.retention = self.window.size_ms + self.lateness + self._reach()

    def rescale(self, states: Rescaling) -> None:
        """Divides the slices, the revisions of late windows and, for rates, the last samples."""
        rescale_slices(states)

    def _reach(self) -> int:
        """How far before the slice of a late record the oldest slice lies that is needed to revise its windows."""
        return max(self.window.size_ms - self.slice_ms, self.rates.reach if self.rates else 0)

    def process(self, batch: pl.DataFrame, state: ShardState, progress: Progress) -> Results:
        """Adds the batch to its slices; returns the windows that the watermark closed or late records changed."""
        slices = SliceStore(state, self._merged)
        if not batch.width:  # the operator before this one in a chain had no results
            batch = pl.DataFrame(schema={self.config.time: pl.Int64, **dict.fromkeys(self.key, pl.String)})
        batch = batch.with_columns(self.window.slice_start(pl.col(self.config.time) - self.config.ahead).alias(PARTIAL))
        too_late = pl.col(PARTIAL) + self.window.size_ms <= closed_until(progress.before, self.lateness)
        late = batch.filter(too_late).drop(PARTIAL)
        batch = batch.filter(~too_late) if late.height else batch
        changed = self._add(batch, slices, progress.before) if batch.height else None
        closed = [p for p in slices.starts if progress.before < p + self.slice_ms <= progress.now]
        if self.rates:
            self.rates.carry(changed[PARTIAL].unique().to_list() if changed is not None else [], slices, state)
            self.rates.close(closed, slices, state)
            changed = self.rates.revise(changed, slices, progress.before)
        ends = sorted({e for p in slices.starts for e in self.window.ends_between(p, progress.before, progress.now)})
        most = _WINDOWS_AT_ONCE if self.window.slices_per_window > _WINDOWS_AT_ONCE else max(1, len(ends))
        groups = [ends[at : at + most] for at in range(0, len(ends), most)]
        pieces = [self._windows(group, None, slices) for group in groups]
        if changed is not None:
            pieces.append(self._revise(changed, slices, state, progress.before))
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
        return late[SUMS].select(self.by)

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
        late = state.notes.get("late", [])
        for end in filter(expired, late):
            state.remove(f"late/{end}")
        state.notes["late"] = [end for end in late if not expired(end)]

    def _revise(self, changed: pl.DataFrame, slices: SliceStore, state: ShardState, before: int) -> pl.DataFrame:
        """The new revisions of windows over changed keys and slices whose allowed lateness is not over."""
        windows = self._explode(changed).select(*self.key, END).unique()
        windows = windows.filter((pl.col(END) <= before) & (pl.col(END) > closed_until(before, self.lateness)))
        pieces = []
        for (end,), group in windows.partition_by(END, as_dict=True).items():
            name = f"late/{end}"
            spans = range(int(end) - self.window.size_ms, int(end), self.slice_ms)
            held, empty = slices.before(spans), group.select(self.key).clear()
            known = (held.select(self.key).unique() if held is not None else empty).with_columns(
                pl.lit(1).alias("__known")
            )
            stored = state.get(name)
            none = empty.with_columns(pl.lit(0, pl.Int64).alias(REVISION))
            earlier = unpack(stored)[REVISION] if stored else none
            numbered = group.join(known, on=self.key, how="left", nulls_equal=True)
            numbered = numbered.join(earlier, on=self.key, how="left", nulls_equal=True)
            next_one = pl.col(REVISION).fill_null(0) + pl.col("__known").fill_null(0)
            numbered = numbered.select(*self.key, next_one.cast(pl.Int64).alias(REVISION))
            kept = pl.concat([earlier.join(numbered, on=self.key, how="anti", nulls_equal=True), numbered])
            state.put(name, pack({REVISION: kept}))
            state.notes["late"] = sorted({int(end), *state.notes.get("late", [])})
            pieces.append(self._windows([int(end)], numbered, slices))
        return pl.concat(pieces, how="vertical_relaxed") if pieces else pl.DataFrame()

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

    def _windows(self, ends: list[int], only: pl.DataFrame | None, slices: SliceStore) -> pl.DataFrame:
        """Results of the windows with these ends: of all keys, revision 0, or of the keys and revisions in ``only``."""
        first, last = ends[0] - self.window.size_ms, ends[-1]
        tables = slices.get(p for p in slices.starts if first <= p < last)

        def over(name: str) -> pl.DataFrame | None:
            if name not in tables:
                return None
            rows = self._within(tables[name], ends)
            return rows if only is None else rows.join(only.select(self.key), on=self.key, how="semi", nulls_equal=True)

        by = [*self.key, END]
        sums = over(SUMS)
        assert sums is not None
        several = self.window.slices_per_window > 1
        sums = self.folds.merge(SUMS, sums, by) if several else self.folds.complete(sums)
        rates = over(RATES)
        if self.rates:
            none = sums.select(*by, pl.lit(None, pl.Float64).alias(INCREASE), pl.lit(None, pl.Int64).alias(ELAPSED))
            totals = grouped(rates, by, _SUMMED_RATES) if rates is not None else none.clear()
            sums = sums.join(totals, on=by, how="left", nulls_equal=True)
        result = sums.select(
            *self.key,
            (pl.col(END) - self.window.size_ms).alias("window_start"),
            END,
            *self.folds.finished(),
            *([self.rates.finish().alias(self.rate_name)] if self.rates else []),
        )
        read = {name: rows for name in self.folds.tables if (rows := over(name)) is not None}
        result = self.folds.with_tables(result, read, by)
        if only is None:
            result = result.with_columns(pl.lit(0, pl.Int64).alias(REVISION))
        else:
            result = result.join(only, on=self.key, how="left", nulls_equal=True)
        timing = pl.lit("on_time" if only is None else "late").alias(TIMING)
        return result.with_columns(pl.col(REVISION).alias(PANE), timing).sort(END, *self.key)
