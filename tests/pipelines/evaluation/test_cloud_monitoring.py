"""On recorded metrics of cloud services the score ranks better than the size of the step from the value before."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from models.config import DetectorConfig
from models.detector import Detector
from pipelines.evaluation import bootstrap
from pipelines.evaluation.vus import period, vus_pr
from tests.benchmarks.measures import baselines, datasets

DATA = Path(__file__).parents[4] / "shared" / "data" / "cloud_monitoring"
SHORT = 1_000
"""Longer series are left to `newnormal bench vus`."""


def test_short_series_are_ranked_better_than_by_the_step_from_the_value_before() -> None:
    if not DATA.exists():
        pytest.skip(f"{DATA} is not there")
    series = [part for _, part in datasets.cloud_monitoring(DATA).group_by("entity", maintain_order=True)]
    series = [part for part in series if part.height <= SHORT and part["label"].sum() > 0]
    detector, steps = Detector(DetectorConfig()), max(part.height for part in series)
    state, scores = detector.new_state(len(series)), np.zeros((steps, len(series)))
    times, values = (_table([part[name] for part in series], steps) for name in ("time", "value"))
    for step in range(steps):
        rows = np.flatnonzero([step < part.height for part in series])
        time = times[step, rows].astype(np.int64)
        scores[step, rows] = detector.step(state, rows, time, values[step, rows]).record_score
    ours, theirs = [], []
    for column, part in enumerate(series):
        there = np.isfinite(values[: part.height, column])
        value, labels = values[: part.height, column][there], part["label"].to_numpy()[there]
        ours.append(vus_pr(labels, scores[: part.height, column][there], period(value)))
        theirs.append(vus_pr(labels, baselines.difference(value), period(value)))
    assert len(series) > 10
    assert bootstrap.paired(np.array(ours), np.array(theirs)).mean > 0.03


def _table(columns: list[pl.Series], steps: int) -> np.ndarray:
    table = np.full((steps, len(columns)), np.nan)
    for number, column in enumerate(columns):
        table[: len(column), number] = column.cast(pl.Float64).fill_null(float("nan")).to_numpy()
    return table
