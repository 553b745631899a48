"""Counters in windows: a pane's increase and elapsed time, fixed when it closes, redone where late samples come in."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from engine.aggregates import Rate
from engine.aggregates.base import TIME
from engine.operator.folds import PANE, SAMPLES, SUMS
from engine.state import ShardState, pack, unpack
from engine.time import NEVER

if TYPE_CHECKING:
    from engine.operator.panes import PaneStore

RATES = "rates"
INCREASE, ELAPSED = "rate.increase", "rate.elapsed"


class Rates:
    """The rate of one job's counters, as table `RATES` of each pane: a row a counter with its increase.

    State: segment ``carry`` holds each counter's last sample in closed panes.
    """

    def __init__(self, rate: Rate, key: list[str], pane_ms: int) -> None:
        self.rate, self.key, self.pane_ms = rate, key, pane_ms
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
            self._keep(pl.concat(tables, how="diagonal_relaxed").sort(*self.key, TIME, self.rate.column), state)

    def _keep(self, ordered: pl.DataFrame, state: ShardState, since: int = NEVER) -> None:
        last = ordered.group_by(self.key, maintain_order=True).last().select(*self.key, TIME, self.rate.column)
        state.put("carry", pack({SAMPLES: last.filter(pl.col(TIME) >= since)}))

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
        for (pane,), totals in self._totals(steps).partition_by(PANE, as_dict=True, include_key=False).items():
            if pane in closed:
                panes.add(int(pane), {RATES: totals})
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
        for pane in near:
            tables = panes.get(pane)
            if pane < first or SUMS not in tables:
                continue
            now = totals.filter(pl.col(PANE) == pane).drop(PANE)
            was = tables.get(RATES, now.clear())
            moved = now.join(was, on=now.columns, how="anti", nulls_equal=True)
            if moved.height:
                others = was.join(moved, on=self.key, how="anti")
                panes.put(pane, {**tables, RATES: pl.concat([others, moved])})
                changed = pl.concat([changed, moved.select(self.key).with_columns(pl.lit(pane).alias(PANE))])
        return changed.unique()

    def _samples(self, starts: list[int], panes: PaneStore) -> pl.DataFrame | None:
        tables = [panes.get(p)[SAMPLES] for p in starts if SAMPLES in panes.get(p)]
        return pl.concat(tables, how="diagonal_relaxed") if tables else None

    def _totals(self, steps: pl.DataFrame) -> pl.DataFrame:
        pane = (pl.col(TIME) - pl.col(TIME) % self.pane_ms).alias(PANE)
        sums = (pl.col("increase").sum().alias(INCREASE), pl.col("elapsed").sum().alias(ELAPSED))
        return steps.group_by(*self.key, pane).agg(*sums)
