"""What was expected at the hour of day is said of a series only once several days of it are known."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from pipelines.contracts.settings import DetectorSettings
from pipelines.jobs.detectors.metrics.detection import Detection

HOUR, STEP = 3_600_000, 1_800_000


@pytest.mark.parametrize(("days", "known"), [(1, False), (8, True)])
def test_the_value_of_the_hour_is_told_of_an_anomaly_after_some_days_and_not_before(days: int, known: bool) -> None:
    steps = days * 24 * HOUR // STEP
    ends = np.arange(1, steps + 1) * STEP
    values = 100 + 40 * np.sin(2 * np.pi * ends / (24 * HOUR)) + np.random.default_rng(0).normal(0, 1, steps)
    values[-1] = 900.0
    frame = pl.DataFrame({"window_start": ends - STEP, "window_end": ends, "value": values})
    frame = frame.select(pl.lit("a").alias("entity"), pl.lit("m").alias("metric"), pl.all())
    detection = Detection(DetectorSettings())
    verdicts, _ = detection.process(frame, detection.new_state(), now=int(ends[-1]))
    last = verdicts.sort("window_end").row(-1, named=True)
    assert last["kind"] == "anomaly"
    assert (last["expected"]["hour"] is not None) == known
