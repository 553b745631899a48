"""The model alone: how many values a second one core judges and learns, and what a series takes up."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from models.config import DetectorConfig
from models.detector import Detector

STEP = 300_000
_WARM = 30


def run(series: int, seconds: float, windows: int = 1) -> dict[str, Any]:
    """Values of ``series``, so many windows a call, for ``seconds``, after some to warm up; one in 1000 an outlier."""
    detector, rng = Detector(DetectorConfig()), np.random.default_rng(1)
    state, rows = detector.new_state(series), np.repeat(np.arange(series), windows)
    values = rng.normal(100, 5, (64, series * windows))
    values[rng.random(values.shape) < 0.001] *= 3
    step, judged, spent = 0, 0, 0.0
    while spent < seconds:
        instants = np.tile((step * windows + np.arange(windows)) * STEP, series)
        begun = time.perf_counter()
        detector.step(state, rows, instants, values[step % len(values)])
        if step * windows >= _WARM:
            spent += time.perf_counter() - begun
            judged += len(rows)
        step += 1
    size = sum(column[:1].nbytes for column in state.values())
    rate = round(judged / spent)
    return {"series": series, "windows": windows, "values_per_second": rate, "bytes_per_series": size}
