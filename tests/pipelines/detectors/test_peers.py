"""A machine that joins starts from the others, the same whatever the batches and whatever came late."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from polars.testing import assert_frame_equal

from engine.state.segments import ShardState
from pipelines.contracts.settings import DetectorSettings
from pipelines.jobs.detectors.metrics.judging import Metrics
from pipelines.jobs.detectors.metrics.model_log import ModelLog
from pipelines.jobs.detectors.state_table import as_frame
from tests.pipelines.detectors.coming import judged

STEP, STEPS, JOINS, HORIZON = 10_000, 76, 61, 60_000


def _windows(revised: bool) -> list[dict[str, Any]]:
    """Five machines and one that joins; ``revised``: two windows before it joins came wrong and are mended late."""
    rng, rows = np.random.default_rng(0), []
    for number in range(STEPS):
        for machine in ["a", "b", "c", "d", "e", *(["new"] if number >= JOINS else [])]:
            value, end = float(rng.normal(50, 3)), (number + 1) * STEP
            row = {"entity": machine, "metric": "cpu", "kind": "gauge", "window_start": end - STEP, "window_end": end}
            row |= {"count": 1, "mean": value, "p95": None, "rate": None, "revision": 0, "comes": end}
            if revised and machine == "a" and number in (47, 53):
                rows.append(row | {"mean": 900.0})
                row |= {"revision": 1, "comes": end + 4 * STEP}
            rows.append(row)
    return rows


def _judge(rows: list[dict[str, Any]], every: int) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The last word on each window, and what is believed of each series."""
    metrics = Metrics(HORIZON)
    last, segments = judged(rows, range(every * STEP, STEPS * STEP, every * STEP), metrics)
    models = metrics.judge(DetectorSettings()).detection.new_state()
    assert ModelLog(ShardState(segments)).read(models)
    believed = as_frame(models.series.to_arrow()).sort("entity", "metric")
    return last, believed


def test_a_joining_machine_is_judged_the_same_whatever_the_batches_and_what_came_late() -> None:
    wanted, right = _judge(_windows(False), 4)
    assert (right.filter(entity="new")["peers.variance"] > 0).all()
    assert (right.filter(entity="a")["peers.variance"] == 0).all()
    for every, revised in ((1, False), (STEPS, False), (3, True), (5, True)):
        found, believed = _judge(_windows(revised), every)
        assert_frame_equal(found, wanted, check_exact=True)
        assert_frame_equal(believed, right, check_exact=True)
