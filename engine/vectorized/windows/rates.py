"""Counters in windows: a pane's increase and elapsed time, fixed when it closes, redone where late samples come in."""

from __future__ import annotations

import polars as pl

from engine.aggregates import Rate
from engine.spec.duration import NEVER
from engine.state.segments import ShardState, pack, unpack
from engine.vectorized.windows.folds import PANE, SAMPLES, SUMS
from engine.vectorized.windows.slices import PaneStore, of_panes

RATES = "rates"
INCREASE, ELAPSED = "rate.increase", "rate.elapsed"


class Rates:
    """The rate of one job's counters, as table `RATES` of each pane: a row a counter with its increase.

    State: segment ``carry`` holds each counter's last sample in closed panes.
    """

    def __init__(self, rate: Rate, key: list[str], pane_ms: int) -> None:
        self.rate, self.key, self.pane_ms, self.time = rate, key, pane_ms, rate.time
        self.reach = -(-rate.lookback_ms // pane_ms) * pane_ms
        """How far from a sample's pane that of its predecessor or successor may lie: the lookback, in whole panes."""

    def finish(self) -> pl.Expr:
        """The rate, from the columns; null without two samples."""
        rate = pl.col(INCREASE) * 1000 / pl.col(ELAPSED)
        return pl.when(pl.col(ELAPSED) > 0).then(rate).otherwise(None)

    def carry(self, late: list[int], panes: PaneStore, state: ShardState) -> None:
        """Late samples may be their counters' last ones in closed panes."""
        samples = self._samples(late, panes)
        if samples is not None:
            stored = state.get("carry")
            tables = [unpack(stored)[SAMPLES], samples] if stored else [samples]
            self._keep(pl.concat(tables, how="diagonal_relaxed").sort(*self.key, self.time, self.rate.column), state)

    def _keep(self, ordered: pl.DataFrame, state: ShardState, since: int = NEVER) -> None:
        last = ordered.group_by(self.key, maintain_order=True).last().select(*self.key, self.time, self.rate.column)
        state.put("carry", pack({SAMPLES: last.filter(pl.col(self.time) >= since)}))

    def close(self, closed: list[int], panes: PaneStore, state: ShardState) -> None:
        """Fixes the increase in panes that the watermark has just passed, and carries each counter's last sample on."""
        samples = self._samples(closed, panes)
        stored = state.get("carry") if closed else None
        if stored:
            tables = [unpack(stored)[SAMPLES], *([samples] if samples is not None else [])]
            samples = pl.concat(tables, how="diagonal_relaxed")
        if samples is None:
            return
        steps = self.rate.steps(samples, self.key)
        if totals := of_panes({RATES: self._totals(steps)}, closed):
            panes.add(totals)
        self._keep(steps, state, since=max(closed) - self.rate.lookback_ms)

    def revise(self, changed: pl.DataFrame | None, panes: PaneStore, before: int) -> pl.DataFrame | None:
        """Redoes closed panes in which late samples came in, and those whose first increase starts in one of them.

        Returns:
            ``changed`` with the keys and panes added whose rate is now another.
        """
        if changed is None or not changed.height:
            return changed
        first = min(changed[PANE].to_list())
        low, high = first - self.reach, max(changed[PANE].to_list()) + self.reach
        near = [p for p in panes.starts if low <= p <= high and p + self.pane_ms <= before]
        samples = self._samples(near, panes)
        if samples is None:
            return changed
        mine = samples.join(changed.select(self.key).unique(), on=self.key, how="semi")
        totals = self._totals(self.rate.steps(mine, self.key))
        tables = of_panes(panes.get(near), {pane for pane in near if pane >= first})
        if SUMS not in tables:
            return changed.unique()
        now = of_panes({RATES: totals}, tables[SUMS][PANE].unique().to_list()).get(RATES, totals.clear())
        was = tables.get(RATES, now.clear()).select(now.columns)
        moved = now.join(was, on=now.columns, how="anti", nulls_equal=True)
        if moved.height:
            touched = set(moved[PANE].to_list())
            others = was.join(moved, on=[*self.key, PANE], how="anti")
            panes.put(of_panes(tables | {RATES: pl.concat([others, moved])}, touched), touched)
            changed = pl.concat([changed, moved.select(changed.columns)])
        return changed.unique()

    def _samples(self, starts: list[int], panes: PaneStore) -> pl.DataFrame | None:
        return panes.get(starts).get(SAMPLES)

    def _totals(self, steps: pl.DataFrame) -> pl.DataFrame:
        pane = (pl.col(self.time) - pl.col(self.time) % self.pane_ms).alias(PANE)
        sums = (pl.col("increase").sum().alias(INCREASE), pl.col("elapsed").sum().alias(ELAPSED))
        return steps.group_by(*self.key, pane).agg(*sums)
