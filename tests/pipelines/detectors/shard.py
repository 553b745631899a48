"""What tests of series and machines that end share: windows, and the detector of one shard."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import polars as pl

from engine.spec.duration import NEVER
from engine.spec.operator import Progress
from engine.state.segments import DictSegments, ShardState
from engine.vectorized.build import build
from pipelines.contracts.settings import DetectorSettings
from pipelines.jobs.detectors.detect_operator import NEWS, STATE, Detect
from pipelines.jobs.detectors.metrics.judging import Metrics
from pipelines.jobs.detectors.metrics.model_log import ModelLog
from pipelines.jobs.detectors.metrics.state import DetectionState
from pipelines.jobs.detectors.state_table import as_frame

DAY = 86_400_000
T0 = 20_000 * DAY
SETTINGS = DetectorSettings(emit="all", forget="1d")
IDENTITY = ["entity", "metric", "window_start", "window_end"]
COLUMNS: dict[str, Any] = {
    **dict.fromkeys(("entity", "metric", "kind", "rule", "label", "change"), pl.String),
    **dict.fromkeys(("window_start", "window_end", "count", "revision", "came"), pl.Int64),
    **dict.fromkeys(("mean", "p95", "rate"), pl.Float64),
}
Event = dict[str, Any]


def window(entity: str, metric: str, number: int, value: float = 50.0, step: int = 3_600_000) -> Event:
    """The window that ends after so many steps."""
    start = T0 + (number - 1) * step
    row = {"entity": entity, "metric": metric, "kind": "gauge", "window_start": start, "window_end": start + step}
    return row | {"count": 1, "mean": value, "revision": 0}


@dataclass
class Shard:
    """The detector of one shard, and what it has written."""

    step: int = 3_600_000
    segments: DictSegments = field(default_factory=DictSegments)
    watermark: int = NEVER
    verdicts: list[pl.DataFrame] = field(default_factory=list)
    believed: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)
    deleted: list[tuple[str, str]] = field(default_factory=list)
    counts: list[dict[str, Any]] = field(default_factory=list)

    def take(self, events: list[Event], number: int) -> None:
        """One micro-batch, after which the watermark is at the end of a step."""
        state, now = ShardState(self.segments), T0 + number * self.step
        progress = Progress(self.watermark, now)
        results = build(Detect(SETTINGS, self.metrics)).process(pl.DataFrame(events, COLUMNS), state, progress)
        assert results.late is None
        state.save()
        self.watermark = now
        self.verdicts += [results.records] if results.records.height else []
        self.counts += results.aside.get(NEWS, pl.DataFrame()).to_dicts()
        for belief in results.aside.get(STATE, pl.DataFrame()).to_dicts():
            key = belief["entity"], belief["metric"]
            if belief["kind"] is None:
                assert all(value is None for name, value in belief.items() if name not in ("entity", "metric"))
                self.believed.pop(key, None)
                self.deleted.append(key)
            else:
                self.believed[key] = belief

    @property
    def metrics(self) -> Metrics:
        """The horizon is two windows."""
        return Metrics(2 * self.step, 4)

    @property
    def state(self) -> DetectionState:
        models = self.metrics.judge(SETTINGS).detection.new_state()
        ModelLog(ShardState(self.segments)).read(models)
        return models

    @property
    def known(self) -> tuple[set[tuple[str, ...]], set[tuple[str, ...]]]:
        """The series and the machines in the state."""
        state = self.state
        return set(state.series.keys()), set(state.entities.keys())

    def tables(self) -> dict[str, pl.DataFrame]:
        """The state in an order of its own, without the numbers of rows."""
        state, keys = self.state, ("entity", "metric", "block")
        owners = state.series.columns["heard.owner"][: len(state.series)]
        machines = [name for (name,) in state.entities.names_of(owners)]
        assert machines == state.series.index.keys["entity"].to_list()
        found = {name: as_frame(table) for name, table in state.to_tables().items()}
        single = found["entities"].filter(pl.col("heard.only") >= 0)
        for entity, row in single.select("entity", "heard.only").rows():
            assert state.series.keys()[row][0] == entity
        only = pl.col("heard.only").clip(-2, 0)
        found["entities"] = found["entities"].with_columns(only)
        found["series"] = found["series"].drop("heard.owner")
        return {n: t.sort([key for key in keys if key in t.columns]) for n, t in found.items() if t.height}

    def last_verdicts(self) -> pl.DataFrame:
        """The last revision of each verdict."""
        said = pl.concat(self.verdicts).sort("revision", maintain_order=True)
        return said.unique(IDENTITY, keep="last").sort(IDENTITY).drop("revision")


def run(events: list[Event], cuts: list[int], step: int = 3_600_000) -> Shard:
    """Events that come when their windows end, in micro-batches that end at some steps."""
    shard, before = Shard(step), -1
    for number in cuts:
        ends = range(T0 + (before + 1) * step, T0 + number * step + 1)
        shard.take([event for event in events if event["window_end"] in ends], number)
        before = number
    return shard
