"""Windows that come at some instants, through the detector's processor with state that lasts."""

from __future__ import annotations

from typing import Any

import polars as pl

from engine.spec.duration import END_OF_TIME, NEVER
from engine.spec.operator import Progress
from engine.state.segments import DictSegments, ShardState
from engine.vectorized.build import build
from pipelines.contracts.settings import DetectorSettings
from pipelines.jobs.detectors.detect_operator import Detect
from pipelines.jobs.detectors.metrics.judging import Metrics

_TYPES = {"entity": pl.String, "metric": pl.String, "kind": pl.String, "rule": pl.String, "label": pl.String}
_IDENTITY = ["entity", "metric", "window_end"]


def judged(rows: list[dict[str, Any]], watermarks: range, metrics: Metrics) -> tuple[pl.DataFrame, DictSegments]:
    """The last word on each window, without its revision, and the state.

    Args:
        rows: Windows as the detector reads them, each with the time at which it ``comes``.
        watermarks: A micro-batch ends with each of them, and one at the end of time.
        metrics: The configuration of the judge.
    """
    segments, said, before = DictSegments(), [], NEVER
    process = Detect(DetectorSettings(), metrics)
    for now in [*watermarks, END_OF_TIME]:
        came = [row for row in rows if before < row["comes"] <= now]
        batch = pl.DataFrame(came, dict.fromkeys(rows[0]) | _TYPES, infer_schema_length=None)
        whole = ("window_start", "window_end", "count", "revision")
        batch = batch.with_columns(pl.col(*whole).cast(pl.Int64), pl.col("mean", "p95", "rate").cast(pl.Float64))
        state = ShardState(segments)
        result = build(process).process(batch.drop("comes"), state, Progress(before, now))
        state.save()
        said += [result.records] if result.records.height else []
        before = now
    last = pl.concat(said).sort("revision", maintain_order=True).unique(_IDENTITY, keep="last")
    return last.sort("window_end", "entity", "metric").drop("revision"), segments
