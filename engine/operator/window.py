"""Windowed aggregation of one shard: panes in state, windows put together when the watermark passes their end.

State: segment ``pane/<start>`` holds the partials of all keys in it, ``late/<end>`` the revisions of windows that
late data changed, ``carry`` each counter's last sample in closed panes, ``panes`` the list of panes kept.
"""

from __future__ import annotations

import json
from collections.abc import Callable

import polars as pl

from engine.aggregates import Aggregate, Count, Quantile, Rate
from engine.aggregates.quantile import quantiles
from engine.job import Processor, Progress, Results, WindowAggregate
from engine.operator.lift import PANE, SAMPLES, SUMS, lift, sketch_name
from engine.operator.rates import INCREASE, Rates
from engine.state import Segments, Tables, pack, unpack
from engine.time import duration_ms

END, REVISION = "window_end", "revision"


class WindowProcessor(Processor):
    """The logic of a `WindowAggregate`."""

    def __init__(self, config: WindowAggregate) -> None:
        self.config = config
        self.window = config.window
        self.key = list(config.key)
        self.lateness = duration_ms(config.allowed_lateness, "allowed_lateness")
        self.scalars = {n: a for n, a in config.aggregates.items() if isinstance(a, Aggregate)}
        self.merges: dict[str, pl.Expr] = Count().merge()
        for aggregate in self.scalars.values():
            self.merges |= aggregate.merge()
        self.quantiles: dict[str, dict[str, float]] = {}
        for name, a in config.aggregates.items():
            if isinstance(a, Quantile):
                self.quantiles.setdefault(a.column, {})[name] = a.q
        rates = {n: a for n, a in config.aggregates.items() if isinstance(a, Rate)}
        self.rate_name, rate = next(iter(rates.items()), ("", None))
        self.rates = Rates(rate, self.key, self.window.pane_ms) if rate else None
        self.retention = self.window.size_ms + self.lateness + self._reach()

    def _reach(self) -> int:
        """How far ahead of the pane of a late record the oldest pane lies that its windows are put together from."""
        return max(self.window.size_ms - self.window.pane_ms, self.rates.reach if self.rates else 0)

    def process(self, batch: pl.DataFrame, state: Segments, progress: Progress) -> Results:
        """Merges the batch into its panes and returns the windows that the watermark closed or late data changed."""
        panes = PaneStore(state, self.key)
        start = pl.col(self.config.time)
        batch = batch.with_columns((start - start % self.window.pane_ms).alias(PANE))
        too_late = pl.col(PANE) + self.window.size_ms + self.lateness <= progress.before
        late = batch.filter(too_late).drop(PANE)
        batch = batch.filter(~too_late) if late.height else batch
        touched = self._merge(batch, panes) if batch.height else []
        revised = self._revised(touched, panes, progress.before)
        closed = [p for p in panes.starts if progress.before < p + self.window.pane_ms <= progress.now]
        if self.rates:
            self.rates.carry([p for p in touched if p + self.window.pane_ms <= progress.before], panes, state)
            self.rates.close(closed, panes, state)
            revised = self.rates.revise(revised, panes, progress.before)
        ends = sorted({e for p in panes.starts for e in self.window.ends_of(p) if progress.before < e <= progress.now})
        pieces = [self._windows(ends, None, panes)] if ends else []
        if revised is not None and revised.height:
            pieces.append(self._revise(revised, panes, state, progress.before))
        panes.save(lambda p: p + self.retention <= progress.now)
        return Results(pl.concat(pieces, how="diagonal_relaxed") if pieces else pl.DataFrame(), late)

    def _merge(self, batch: pl.DataFrame, panes: PaneStore) -> list[int]:
        """Adds the batch's partials to their panes; returns the panes touched."""
        lifted = lift(batch, self.key, self.config.aggregates.values())
        parts = {name: table.partition_by(PANE, as_dict=True, include_key=False) for name, table in lifted.items()}
        starts = sorted(int(start) for (start,) in parts[SUMS])
        for start in starts:
            new = {name: by_pane[(start,)] for name, by_pane in parts.items() if (start,) in by_pane}
            panes.put(start, self._merged(panes.get(start), new))
        return starts

    def _merged(self, old: Tables, new: Tables) -> Tables:
        merged = dict(old)
        for name, table in new.items():
            if name not in old:
                merged[name] = table
                continue
            both = pl.concat([old[name], table], how="diagonal_relaxed")
            if name == SUMS:
                merged[name] = both.group_by(self.key).agg(e.alias(n) for n, e in self._merges(both).items())
            elif name == SAMPLES:
                merged[name] = both
            else:
                merged[name] = both.group_by(*self.key, "bucket").agg(pl.col("n").sum())
        return merged

    def _merges(self, sums: pl.DataFrame) -> dict[str, pl.Expr]:
        closed = self.rates is not None and INCREASE in sums.columns
        return self.merges | (self.rates.merges() if self.rates and closed else {})

    def _revised(self, touched: list[int], panes: PaneStore, before: int) -> pl.DataFrame | None:
        """Keys and panes, fired at least once, that the batch changed."""
        fired = [p for p in touched if p + self.window.pane_ms <= before]
        if not fired:
            return None
        return pl.concat([panes.changed(p).with_columns(pl.lit(p).alias(PANE)) for p in fired])

    def _revise(self, changed: pl.DataFrame, panes: PaneStore, state: Segments, before: int) -> pl.DataFrame:
        """New revisions of the windows over changed keys and panes."""
        windows = self._explode(changed).select(*self.key, END).unique()
        windows = windows.filter(pl.col(END) <= before)
        pieces = []
        for (end,), group in windows.partition_by(END, as_dict=True).items():
            name = f"late/{end}"
            spans = [int(end) - i * self.window.pane_ms for i in range(1, self.window.panes_per_window + 1)]
            known = pl.concat([panes.before(p) for p in spans]).unique().with_columns(pl.lit(1).alias("__known"))
            stored = state.get(name)
            empty = group.select(self.key).clear().with_columns(pl.lit(0, pl.Int64).alias(REVISION))
            earlier = unpack(stored)[REVISION] if stored else empty
            numbered = group.join(known, on=self.key, how="left").join(earlier, on=self.key, how="left")
            next_one = pl.col(REVISION).fill_null(0) + pl.col("__known").fill_null(0)
            numbered = numbered.select(*self.key, next_one.cast(pl.Int64).alias(REVISION))
            kept = pl.concat([earlier.join(numbered, on=self.key, how="anti"), numbered])
            state.put(name, pack({REVISION: kept}))
            panes.late.add(int(end))
            pieces.append(self._windows([int(end)], numbered, panes))
        return pl.concat(pieces) if pieces else pl.DataFrame()

    def _explode(self, table: pl.DataFrame) -> pl.DataFrame:
        """One row a window over each row's pane."""
        steps = range(1, self.window.panes_per_window + 1)
        return pl.concat([table.with_columns((pl.col(PANE) + i * self.window.pane_ms).alias(END)) for i in steps])

    def _windows(self, ends: list[int], only: pl.DataFrame | None, panes: PaneStore) -> pl.DataFrame:
        """Results of windows by their ends: of all keys with revision 0, or of the keys and revisions in ``only``."""
        first, last = ends[0] - self.window.size_ms, ends[-1]
        starts = [p for p in panes.starts if first <= p < last]
        wanted = pl.Series(ends, dtype=pl.Int64).implode()

        def over(name: str) -> pl.DataFrame | None:
            tables = [
                t.with_columns(pl.lit(p).alias(PANE)) for p in starts if (t := panes.get(p).get(name)) is not None
            ]
            if not tables:
                return None
            rows = self._explode(pl.concat(tables, how="diagonal_relaxed")).filter(pl.col(END).is_in(wanted))
            return rows if only is None else rows.join(only.select(self.key), on=self.key, how="semi")

        by = [*self.key, END]
        sums = over(SUMS)
        assert sums is not None
        sums = sums.with_columns(pl.lit(None).alias(name) for name in self.merges if name not in sums.columns)
        if self.window.panes_per_window > 1:
            sums = sums.group_by(by).agg(e.alias(n) for n, e in self._merges(sums).items())
        result = sums.select(
            *self.key,
            (pl.col(END) - self.window.size_ms).alias("window_start"),
            END,
            *(a.finish().alias(n) for n, a in self.scalars.items()),
            *([self.rates.finish().alias(self.rate_name)] if self.rates else []),
        )
        for column, named in self.quantiles.items():
            sketch = over(sketch_name(column))
            if sketch is not None:
                result = result.join(quantiles(sketch, by, named), on=by, how="left")
        if only is None:
            result = result.with_columns(pl.lit(0, pl.Int64).alias(REVISION))
        else:
            result = result.join(only, on=self.key, how="left")
        return result.sort(END, *self.key)


class PaneStore:
    """The panes of one batch: read once, written once, and what each held before."""

    def __init__(self, state: Segments, key: list[str]) -> None:
        self.state, self.key = state, key
        kept = json.loads(state.get("panes") or b"{}")
        self.starts: list[int] = kept.get("starts", [])
        self.late: set[int] = set(kept.get("late", []))
        self.now: dict[int, Tables] = {}
        self.was: dict[int, Tables] = {}
        self.dirty: set[int] = set()

    def get(self, start: int) -> Tables:
        """The tables of a pane; empty where it is not kept."""
        if start not in self.now:
            raw = self.state.get(f"pane/{start}") if start in self.starts else None
            self.now[start] = unpack(raw) if raw else {}
        return self.now[start]

    def put(self, start: int, tables: Tables) -> None:
        """Replaces the tables of a pane."""
        self.was.setdefault(start, self.get(start))
        self.now[start] = tables
        self.dirty.add(start)
        if start not in self.starts:
            self.starts = sorted([*self.starts, start])

    def before(self, start: int) -> pl.DataFrame:
        """Keys that the pane held before this batch."""
        tables = self.was.get(start, self.get(start))
        some = next((t[SUMS] for t in (tables, *self.now.values()) if SUMS in t), pl.DataFrame())
        return some.select(self.key) if SUMS in tables else some.select(self.key).clear()

    def changed(self, start: int) -> pl.DataFrame:
        """Keys whose partial of the pane this batch changed."""
        new, old = self.now[start][SUMS], self.was[start].get(SUMS)
        if old is None:
            return new.select(self.key)
        return new.join(old, on=[*self.key, "n"], how="anti", nulls_equal=True).select(self.key)

    def save(self, expired: Callable[[int], bool]) -> None:
        """Writes what changed and forgets what expired."""
        gone = [p for p in self.starts if expired(p)]
        for start in gone:
            self.state.remove(f"pane/{start}")
        for end in [e for e in self.late if expired(e)]:
            self.state.remove(f"late/{end}")
            self.late.discard(end)
        kept = set(self.starts) - set(gone)
        for start in sorted(self.dirty & kept):
            self.state.put(f"pane/{start}", pack(self.now[start]))
        self.starts = sorted(kept)
        self.state.put("panes", json.dumps({"starts": self.starts, "late": sorted(self.late)}).encode())
