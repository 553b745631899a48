"""A series that used to vary and now repeats one value exactly is reported once, with the time at which that began."""

from __future__ import annotations

import numpy as np

from models.config import DetectorConfig
from models.detector import Detector
from models.verdicts import Kind

ROW, STEP = np.array([0]), 60_000


def test_a_value_that_repeats_itself_is_one_anomaly_that_began_with_the_first_repeat() -> None:
    values = np.random.default_rng(0).normal(100, 5, 500)
    values[460:] = values[460] = 100.0
    detector = Detector(DetectorConfig())
    state, told = detector.new_state(1), []
    for i, value in enumerate(values):
        verdict = detector.step(state, ROW, np.array([i * STEP]), np.array([value]))
        if i >= 460 and verdict.kind[0] == Kind.ANOMALY.code:
            told.append((i, int(verdict.since[0])))
    assert len(told) == 1
    assert told[0][0] < 485
    assert told[0][1] == 460 * STEP
