"""`state_score`: whether a series is abnormal now, compared with the last normal, however long that has lasted."""

from __future__ import annotations

import math

import numpy as np
import pytest

from models.config import DetectorConfig
from models.detector import Detector
from models.evidence.repeats import NEVER
from models.series.course import Course
from models.verdicts import Kind, SeriesVerdicts, Standing

STEP, QUIET, LEVEL, NOISE = 60_000, 800, 100.0, 3.0


def _verdicts(after: np.ndarray, seed: int = 0) -> tuple[SeriesVerdicts, Standing]:
    """Noise about a level, then the values after it."""
    values = np.concatenate([np.random.default_rng(seed).normal(LEVEL, NOISE, QUIET), after])
    detector, rows = Detector(DetectorConfig()), np.zeros(len(values), np.int64)
    return detector.steps(detector.new_state(1), rows, np.arange(len(values)) * STEP, values)


def _shifted(windows: int, by: float = 30.0, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).normal(LEVEL + by, NOISE, windows)


def test_it_stays_high_until_the_new_level_is_accepted_while_record_score_falls() -> None:
    verdicts, _ = _verdicts(_shifted(100))
    state, record = verdicts.state_score[QUIET:], verdicts.record_score[QUIET:]
    accepted = verdicts.kind[QUIET:].tolist().index(Kind.NEW_NORMAL.code)
    assert 30 < accepted < 60
    assert state[:accepted].min() > 50
    assert np.median(record[5:accepted]) < 30
    assert (state[accepted:] == 0).all()


def test_it_is_the_distance_in_standard_deviations_50_at_four() -> None:
    """-ln of the density of a Student-t with 4 degrees of freedom, less that of what is expected: e / (e + e(4))."""
    shift = 30.0
    verdicts, standing = _verdicts(_shifted(25, shift))
    away = math.log((LEVEL + shift) / LEVEL) / (NOISE / LEVEL)  # places are in proportion to the value, far from 0
    nats = 2.5 * math.log1p(away**2 / 4)
    score = 100 * nats / (nats + 2.5 * math.log1p(4**2 / 4))
    assert (standing.onset[QUIET:] == QUIET * STEP).all()
    assert np.median(verdicts.state_score[QUIET:]) == pytest.approx(score, abs=2)
    assert np.median(verdicts.state[QUIET:]) == pytest.approx(nats, rel=0.08)


def test_it_is_0_exactly_where_no_incident_is_open_announced_or_not() -> None:
    steps = np.repeat([8.0, -9.0, 12.0, 0.0, 40.0, 0.0], 60) * np.tile(np.repeat([1.0, 0.0], 15), 12)
    verdicts, standing = _verdicts(np.random.default_rng(5).normal(LEVEL, NOISE, len(steps)) + steps)
    announced = verdicts.incident == Course.OPEN.code
    is_open = (standing.onset != NEVER) | announced
    is_open &= (verdicts.kind != Kind.LEARNING.code) & (verdicts.incident != Course.CLOSED.code)
    assert (is_open & ~announced).any(), "some incidents are never announced"
    assert (~is_open[QUIET:]).any()
    np.testing.assert_array_equal(verdicts.state_score > 0, is_open)
    assert verdicts.state_score.max() < 100


def test_it_is_0_as_soon_as_an_operator_calls_the_level_normal() -> None:
    detector, row = Detector(DetectorConfig()), np.array([0])
    state = detector.new_state(1)
    scores = []
    values = np.concatenate([np.random.default_rng(0).normal(LEVEL, NOISE, QUIET), _shifted(40)])
    for window, value in enumerate(values):
        if window == QUIET + 15:
            detector.accept(state, row)
        scores.append(detector.step(state, row, np.array([window * STEP]), np.array([value])).state_score[0])
    assert min(scores[QUIET : QUIET + 15]) > 50
    assert scores[QUIET + 15] == 0
    assert np.median(scores[QUIET + 15 :]) == 0


def test_a_window_without_a_value_says_nothing_and_the_incident_goes_on() -> None:
    values = _shifted(20)
    values[[8, 9]] = np.nan
    score = _verdicts(values)[0].state_score[QUIET:]
    assert (score[[8, 9]] == 0).all()
    assert np.delete(score, [8, 9]).min() > 50
