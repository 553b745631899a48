"""A series that used to vary and now repeats one value exactly is reported once, with the time at which that began."""

from __future__ import annotations

import numpy as np
import pytest

from models.config import DetectorConfig
from models.detector import Detector
from models.verdicts import Kind

ROW, STEP = np.array([0]), 300_000


def test_a_value_that_repeats_itself_is_one_anomaly_that_began_with_the_first_repeat() -> None:
    values = np.random.default_rng(0).normal(100, 5, 500)
    values[460:] = values[460] = 100.0
    detector = Detector(DetectorConfig())
    state, anomalies = detector.new_state(1), []
    for i, value in enumerate(values):
        verdict = detector.step(state, ROW, np.array([i * STEP]), np.array([value]))
        if i >= 460 and verdict.kind[0] == Kind.ANOMALY.code:
            anomalies.append((i, int(verdict.since[0])))
    assert len(anomalies) == 1
    assert anomalies[0][0] < 485
    assert anomalies[0][1] == 460 * STEP


@pytest.mark.parametrize(("step", "more"), [(STEP, 0.0), (60_000, 7 * np.log(5))], ids=["five minutes", "a minute"])
@pytest.mark.parametrize("repeats", [1, 3, 40, 90])
def test_a_few_repeats_after_a_long_history_without_any_are_chance(repeats: int, step: int, more: float) -> None:
    """Five hundred values are remembered: a first repeat is worth ln 1000 nats.

    Of windows of five minutes 13 are told of. A minute has five times as many a month: 28 + 7 ln 5 nats of weight are
    told of instead of 28, and so many times that many of repeats, squared.

    A further one is as likely as not at first, and a twentieth of what is missing to 1 more likely with each, up to 13
    nats: what is stuck teaches nothing.
    """
    nats, chance, until = np.log(1000), 0.5, 2
    while nats < 13 * ((28 + more) / 28) ** 2:
        nats -= np.log(chance)
        chance += 0.05 * (1 - chance) if nats < 13 else 0.0
        until += 1
    values = np.random.default_rng(0).normal(100, 5, 8_000 + 150)
    values[8_000 : 8_000 + repeats] = values[7_999]
    rows, time = np.zeros(len(values), np.int64), np.arange(len(values)) * step
    detector = Detector(DetectorConfig())
    verdicts = detector.steps(detector.new_state(1), rows, time, values)[0]
    told = np.flatnonzero(verdicts.kind[8_000:] == Kind.ANOMALY.code)
    assert told.tolist() == ([] if repeats < until else [until - 2])


@pytest.mark.parametrize("threshold", [5, 30, 50])
def test_what_never_varied_is_not_stuck_whatever_the_threshold(threshold: float) -> None:
    """A machine without swap has used none from its first value on: it did not `use to vary`."""
    values = np.zeros(3_000)
    rows, time = np.zeros(len(values), np.int64), np.arange(len(values)) * STEP
    detector = Detector(DetectorConfig(threshold=threshold))
    verdicts = detector.steps(detector.new_state(1), rows, time, values)[0]
    assert not (verdicts.kind == Kind.ANOMALY.code).any()
    assert not verdicts.state_score.any()
