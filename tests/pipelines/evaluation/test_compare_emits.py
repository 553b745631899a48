"""A comparison of versions that write only what is novel finds the alarms that one of all windows finds."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from pipelines.contracts.settings import load
from pipelines.evaluation.comparison.comparison import JudgedBy, compare
from pipelines.evaluation.comparison.verdicts import SCHEMA
from pipelines.jobs.detectors.metrics.detection import Detection
from pipelines.jobs.detectors.worst import reported

STEP = 10_000


def judged(seed: int, threshold: float) -> pl.DataFrame:
    """The final verdicts of the real detector on three series, each with a change that lasts and some spikes."""
    rng, rows = np.random.default_rng(seed), []
    for entity in ("a", "b", "c"):
        values = rng.normal(50, 3, 900)
        values[int(rng.integers(300, 700)) :] += rng.choice([12.0, 30.0])
        for _ in range(6):
            at = int(rng.integers(100, 900))
            values[at : at + int(rng.choice([1, 3]))] += rng.choice([15.0, 25.0, 60.0])
        rows += [(entity, "cpu", i * STEP, (i + 1) * STEP, float(value)) for i, value in enumerate(values)]
    frame = pl.DataFrame(rows, ["entity", "metric", "window_start", "window_end", "value"], orient="row")
    detection = Detection(load(**{"detector.threshold": threshold}).detector)
    made = detection.process(frame, detection.new_state())[0].sort("revision", maintain_order=True)
    made = made.unique(["entity", "metric", "window_start", "window_end"], keep="last")
    texts = {name: pl.lit(None, pl.String) for name in ("message", "details")}
    made = made.sort("entity", "metric", "window_end").with_columns(**texts)
    return made.select(pl.col(name).cast(kind) for name, kind in SCHEMA.items())


@pytest.mark.parametrize("seed", range(3))
def test_alarms_are_the_same_with_all_windows_and_with_those_that_are_novel(seed: int) -> None:
    one, two = judged(seed, 50.0), judged(seed, 30.0)
    thin = [each.filter(reported()) for each in (one, two)]
    novel = compare(JudgedBy("v1", thin[0], 50.0, {}, "novel"), JudgedBy("v2", thin[1], 30.0, {}, "novel"))
    times = novel.times.start, novel.times.end
    whole = compare(JudgedBy("v1", one, 50.0, {}, "all"), JudgedBy("v2", two, 30.0, {}, "all"), (), *times)
    assert novel.outcomes() == whole.outcomes()
