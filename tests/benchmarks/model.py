"""The model alone: how many values a second one core judges and learns, and what a series takes up."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from models.config import DetectorConfig
from models.detector import Detector

STEP = 300_000
_WARM = 30


def run(series: int, seconds: float) -> dict[str, Any]:
    """Steps of ``series`` values, one in a thousand of them an outlier, for ``seconds``, after some to warm up."""
    detector, rng = Detector(DetectorConfig()), np.random.default_rng(1)
    state, rows = detector.new_state(series), np.arange(series)
    values = rng.normal(100, 5, (64, series))
    values[rng.random(values.shape) < 0.001] *= 3
    step, judged, spent = 0, 0, 0.0
    while spent < seconds:
        instant = np.full(series, step * STEP)
        begun = time.perf_counter()
        detector.step(state, rows, instant, values[step % len(values)])
        if step >= _WARM:
            spent += time.perf_counter() - begun
            judged += series
        step += 1
    size = sum(column[:1].nbytes for column in state.values())
    return {"series": series, "values_per_second": round(judged / spent), "bytes_per_series": size}
