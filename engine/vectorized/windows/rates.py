"""Rates of counters in sliced windows: the increase in a slice is computed when the slice closes.

It is computed again when late samples come in.
"""

from __future__ import annotations

import polars as pl

from engine.aggregates.rate import APART, ELAPSED, GROWN, INCREASE, Rate
from engine.spec.duration import NEVER
from engine.state.segments import ShardState, pack, unpack
from engine.vectorized.windows.folds import PARTIAL, SAMPLES, SUMS
from engine.vectorized.windows.slices import SliceStore, of_slices
from engine.windows import Sliding

RATES = "rates"


class Rates:
    """The rate of a job's counters. Table `RATES` of each slice has a row for each counter, with its increase.

    State: segment ``carry`` holds the last sample of each counter in closed slices.
    """

    def __init__(self, rate: Rate, key: list[str], window: Sliding, ahead: int) -> None:
        self.rate, self.key, self.window, self.time = rate, key, window, rate.time
        self.slice_ms, self.ahead = window.slice_ms, ahead
        self.reach = -(-rate.lookback_ms // self.slice_ms) * self.slice_ms
        """Largest distance between the slices of neighbouring samples, milliseconds: the lookback in whole slices."""

    def finish(self) -> pl.Expr:
        """Expression of the rate; null without two samples."""
        rate = pl.col(INCREASE) * 1000 / pl.col(ELAPSED)
        return pl.when(pl.col(ELAPSED) > 0).then(rate).otherwise(None)

    def carry(self, late: list[int], slices: SliceStore, state: ShardState) -> None:
        """Updates the last samples of counters in closed slices, where late samples are newer."""
        samples = self._samples(late, slices)
        if samples is not None:
            stored = state.get("carry")
            tables = [unpack(stored)[SAMPLES], samples] if stored else [samples]
            self._keep(pl.concat(tables, how="diagonal_relaxed").sort(*self.key, self.time, self.rate.column), state)

    def _keep(self, ordered: pl.DataFrame, state: ShardState, since: int = NEVER) -> None:
        last = ordered.group_by(self.key, maintain_order=True).last().select(*self.key, self.time, self.rate.column)
        state.put("carry", pack({SAMPLES: last.filter(pl.col(self.time) >= since)}))

    def close(self, closed: list[int], slices: SliceStore, state: ShardState) -> None:
        """Computes the increase in slices that the watermark has just passed; keeps each counter's last sample."""
        samples = self._samples(closed, slices)
        stored = state.get("carry") if closed else None
        if stored:
            tables = [unpack(stored)[SAMPLES], *([samples] if samples is not None else [])]
            samples = pl.concat(tables, how="diagonal_relaxed")
        if samples is None:
            return
        steps = self.rate.steps(samples, self.key)
        if totals := of_slices({RATES: self._totals(steps)}, closed):
            slices.add(totals)
        self._keep(steps, state, since=max(closed) - self.rate.lookback_ms)

    def revise(self, changed: pl.DataFrame | None, slices: SliceStore, before: int) -> pl.DataFrame | None:
        """Recomputes closed slices with late samples, and slices whose first increase starts in one of them.

        Returns:
            ``changed``, and the further keys and slices whose rate has changed.
        """
        if changed is None or not changed.height:
            return changed
        first = min(changed[PARTIAL].to_list())
        low, high = first - self.reach, max(changed[PARTIAL].to_list()) + self.reach
        near = [p for p in slices.starts if low <= p <= high and p + self.slice_ms <= before]
        samples = self._samples(near, slices)
        if samples is None:
            return changed
        mine = samples.join(changed.select(self.key).unique(), on=self.key, how="semi", nulls_equal=True)
        totals = self._totals(self.rate.steps(mine, self.key))
        tables = of_slices(slices.get(near), {start for start in near if start >= first})
        if SUMS not in tables:
            return changed.unique()
        now = of_slices({RATES: totals}, tables[SUMS][PARTIAL].unique().to_list()).get(RATES, totals.clear())
        was = tables.get(RATES, now.clear()).select(now.columns)
        moved = now.join(was, on=now.columns, how="anti", nulls_equal=True)
        if moved.height:
            touched = set(moved[PARTIAL].to_list())
            others = was.join(moved, on=[*self.key, PARTIAL], how="anti", nulls_equal=True)
            slices.put(of_slices(tables | {RATES: pl.concat([others, moved])}, touched), touched)
            changed = pl.concat([changed, moved.select(changed.columns)])
        return changed.unique()

    def _samples(self, starts: list[int], slices: SliceStore) -> pl.DataFrame | None:
        return slices.get(starts).get(SAMPLES)

    def _totals(self, steps: pl.DataFrame) -> pl.DataFrame:
        start = self.window.slice_start(pl.col(self.time) - self.ahead).alias(PARTIAL)
        sums = (pl.col(GROWN).sum().alias(INCREASE), pl.col(APART).sum().alias(ELAPSED))
        return steps.group_by(*self.key, start).agg(*sums)
