"""Counters in windows: a pane's increase and elapsed time, fixed when it closes, redone where late samples come in."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from engine.aggregates import Rate
from engine.aggregates.base import TIME
from engine.operator.lift import PANE, SAMPLES, SUMS
from engine.state import Segments, pack, unpack
from engine.time import NEVER

if TYPE_CHECKING:
    from engine.operator.window import PaneStore

INCREASE, ELAPSED = "rate.increase", "rate.elapsed"


class Rates:
    """The rate of one job's counters, as two more columns of each pane's partial."""

    def __init__(self, rate: Rate, key: list[str], pane_ms: int) -> None:
        self.rate, self.key, self.pane_ms = rate, key, pane_ms
        self.reach = -(-rate.lookback_ms // pane_ms) * pane_ms
        """How far from a sample's pane that of its predecessor or successor may lie: the lookback, in whole panes."""

    def merges(self) -> dict[str, pl.Expr]:
        """The columns, as aggregations over a group of panes."""
        return {name: pl.col(name).sum() for name in (INCREASE, ELAPSED)}

    def finish(self) -> pl.Expr:
        """The rate, from the columns."""
        rate = pl.col(INCREASE) * 1000 / pl.col(ELAPSED)
        return pl.when(pl.col(ELAPSED) > 0).then(rate).otherwise(None)

    def carry(self, late: list[int], panes: PaneStore, state: Segments) -> None:
        """Late samples may be their counters' last ones in closed panes."""
        stored = state.get("carry")
        samples = self._samples(late, panes)
        if samples.width:
            tables = [unpack(stored)[SAMPLES], samples] if stored else [samples]
            self._keep(pl.concat(tables, how="diagonal_relaxed").sort(*self.key, TIME, self.rate.column), state)

    def _keep(self, ordered: pl.DataFrame, state: Segments, since: int = NEVER) -> None:
        last = ordered.group_by(self.key, maintain_order=True).last().select(*self.key, TIME, self.rate.column)
        state.put("carry", pack({SAMPLES: last.filter(pl.col(TIME) >= since)}))

    def close(self, closed: list[int], panes: PaneStore, state: Segments) -> None:
        """Fixes the increase in panes that the watermark has just passed, and carries each counter's last sample on."""
        if not closed:
            return
        stored = state.get("carry")
        samples = self._samples(closed, panes)
        if stored:
            carried = unpack(stored)[SAMPLES]
            samples = pl.concat([carried, samples], how="diagonal_relaxed") if samples.width else carried
        if not samples.width:
            for pane in closed:
                self._write(pane, None, panes)
            return
        steps = self.rate.steps(samples, self.key)
        self._store(steps, closed, panes)
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
        if not samples.width:
            for pane in changed[PANE].unique().to_list():
                self._write(pane, None, panes)
            return changed
        mine = samples.join(changed.select(self.key).unique(), on=self.key, how="semi")
        totals = self._totals(self.rate.steps(mine, self.key))
        for pane in near:
            if pane < first or SUMS not in panes.get(pane):
                continue
            was = panes.get(pane)[SUMS]
            now = self._write(pane, totals.filter(pl.col(PANE) == pane).drop(PANE), panes, keep=True)
            if INCREASE in was.columns:
                moved = now.join(was, on=[*self.key, INCREASE, ELAPSED], how="anti", nulls_equal=True)
                changed = pl.concat([changed, moved.select(self.key).with_columns(pl.lit(pane).alias(PANE))])
        return changed.unique()

    def _samples(self, starts: list[int], panes: PaneStore) -> pl.DataFrame:
        tables = [panes.get(p)[SAMPLES] for p in starts if SAMPLES in panes.get(p)]
        return pl.concat(tables, how="diagonal_relaxed") if tables else pl.DataFrame()

    def _totals(self, steps: pl.DataFrame) -> pl.DataFrame:
        pane = (pl.col(TIME) - pl.col(TIME) % self.pane_ms).alias(PANE)
        sums = (pl.col("increase").sum().alias(INCREASE), pl.col("elapsed").sum().alias(ELAPSED))
        return steps.group_by(*self.key, pane).agg(*sums)

    def _store(self, steps: pl.DataFrame, starts: list[int], panes: PaneStore) -> None:
        totals = self._totals(steps).partition_by(PANE, as_dict=True, include_key=False)
        for pane in starts:
            self._write(pane, totals.get((pane,)), panes)

    def _write(self, pane: int, totals: pl.DataFrame | None, panes: PaneStore, keep: bool = False) -> pl.DataFrame:
        """Sets the two columns of a pane; with ``keep``, keys that ``totals`` lacks keep theirs."""
        tables = panes.get(pane)
        sums = tables[SUMS]
        if totals is None or not totals.height:
            if INCREASE not in sums.columns:
                sums = sums.with_columns(pl.lit(0.0).alias(INCREASE), pl.lit(0, pl.Int64).alias(ELAPSED))
        else:
            joined = sums.join(totals, on=self.key, how="left", suffix=".new")
            for name in (INCREASE, ELAPSED):
                if f"{name}.new" in joined.columns:
                    old = pl.col(name) if keep else pl.lit(None)
                    joined = joined.with_columns(pl.coalesce(f"{name}.new", old).alias(name)).drop(f"{name}.new")
            sums = joined.with_columns(pl.col(INCREASE).fill_null(0.0), pl.col(ELAPSED).fill_null(0))
        panes.put(pane, {**tables, SUMS: sums})
        return sums
