"""A machine that joins others is judged by what is usual for them, until it has enough values of its own."""

from __future__ import annotations

import numpy as np

from models.config import DetectorConfig
from models.detector import Detector
from models.numbers.arrays import Array, Columns
from tests.models.contracts import STEP, same_state

OLD, NEW, HISTORY = 30, 40, 400


def _site(seed: int) -> tuple[Detector, Columns, Array, Array, np.random.Generator]:
    """30 machines with a history, 40 new ones that start from it, and the same 40 starting from nothing."""
    rng, detector = np.random.default_rng(seed), Detector(DetectorConfig())
    n = OLD + 2 * NEW
    centre, spread = rng.normal(50, 5, n), 2 * np.exp(rng.normal(0, 0.1, n))
    centre[OLD + NEW :], spread[OLD + NEW :] = centre[OLD : OLD + NEW], spread[OLD : OLD + NEW]
    state, old = detector.new_state(n), np.arange(OLD)
    for step in range(HISTORY):
        detector.step(state, old, np.full(OLD, step * STEP), rng.normal(centre[:OLD], spread[:OLD]))
    sums = detector.newcomers.sums(state, old, np.zeros(OLD, np.int64), 1)
    detector.newcomers.start(state, np.arange(OLD, OLD + NEW), sums, np.zeros(NEW, np.int64))
    return detector, state, centre[OLD:], spread[OLD:], rng


def test_a_new_machine_finds_its_anomaly_at_window_ten_and_is_quiet_before_and_after() -> None:
    detector, state, centre, spread, rng = _site(5)
    rows, false = np.arange(OLD, OLD + 2 * NEW), 0
    for window in range(20):
        time = np.full(2 * NEW, (HISTORY + window) * STEP)
        if window == 10:
            verdict = detector.score(state, rows, time, centre + 8 * spread)
            alarms = (verdict.record_score[:NEW] >= 50).mean(), (verdict.record_score[NEW:] >= 50).mean()
            score = verdict.record_score[:NEW].mean(), verdict.record_score[NEW:].mean()
        noise = np.tile(rng.normal(size=NEW), 2)
        verdict = detector.step(state, rows, time, centre + noise * spread)
        false += int((verdict.record_score[:NEW] >= 50).sum())
    assert false == 0
    assert alarms[0] > 0.9
    assert alarms[0] >= alarms[1]
    assert score[0] > score[1] + 2


def test_the_band_is_right_from_the_second_window_on() -> None:
    detector, state, centre, spread, rng = _site(6)
    rows = np.arange(OLD, OLD + NEW)
    for window in range(3):
        time = np.full(NEW, (HISTORY + window) * STEP)
        verdict = detector.step(state, rows, time, rng.normal(centre[:NEW], spread[:NEW]))
    width = (verdict.upper - verdict.lower) / (2 * 3.29 * spread[:NEW])
    assert ((width > 0.9) & (width < 2.5)).all()


def test_without_peers_a_series_starts_as_one_alone() -> None:
    detector = Detector(DetectorConfig())
    state, fresh = detector.new_state(3), detector.new_state(3)
    sums = detector.newcomers.sums(state, np.arange(2), np.zeros(2, np.int64), 1)
    detector.newcomers.start(state, np.array([2]), sums, np.array([0]))
    same_state(state, fresh)


def test_what_is_asked_of_the_others_fades_out() -> None:
    detector, state, centre, spread, rng = _site(7)
    rows = np.arange(OLD, OLD + NEW)
    for window in range(250):
        time = np.full(NEW, (HISTORY + window) * STEP)
        verdict = detector.step(state, rows, time, rng.normal(centre[:NEW] + 100, spread[:NEW]))
    without = {name: column.copy() for name, column in state.items()}
    without["peers.variance"][:] = 0.0
    value = np.full(NEW, 100.0)
    alone = detector.score(without, rows, time + STEP, value)
    np.testing.assert_array_equal(detector.score(state, rows, time + STEP, value).record_score, alone.record_score)
    np.testing.assert_allclose(verdict.typical, centre[:NEW] + 100, atol=4)
