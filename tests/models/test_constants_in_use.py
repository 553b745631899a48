"""Constants of the models, each by what a user notices of it: when a machine is judged, when an entity is absent."""

from __future__ import annotations

import numpy as np
import pytest

from models.config import DetectorConfig
from models.detector import Detector
from models.machine.config import MultivariateConfig
from models.machine.multivariate import Multivariate
from models.numbers.arrays import Rows
from models.numbers.calibration import TailCalibration
from models.templates.config import TemplateConfig
from models.templates.model import Templates
from models.templates.tables import LogWindow
from models.verdicts import Kind

ROW, STEP = np.array([0]), 60_000


def test_a_machine_is_judged_from_its_ninth_window_on_and_its_chance_is_that_of_its_residuals() -> None:
    rng, model = np.random.default_rng(0), Multivariate(MultivariateConfig(), 3)
    state = model.new_state(1)
    for window in range(40):
        value = rng.normal(50, 2, (1, 3)) + (30 if window == 35 else 0)
        verdict = model.step(state, ROW, np.array([window * STEP]), value)
        assert (verdict.kind[0] == Kind.LEARNING.code) == (window < 8), window
        assert verdict.probability[0] == pytest.approx(np.exp(-verdict.evidence["residual"][0]), rel=1e-9)


def _lines(counts: list[float]) -> LogWindow:
    owner = np.arange(len(counts))
    return LogWindow(owner, 0 * owner, owner, owner, 0 * owner, np.array(counts))


def test_an_entity_without_lines_scores_nothing_until_its_silence_is_worth_20_nats() -> None:
    rng, model, n = np.random.default_rng(0), Templates(TemplateConfig()), 20
    tables = model.new_tables(n, 1, n, 1)
    for _ in range(300):
        model.step(tables, _lines(rng.poisson(2.0, n).tolist()))
    nats, scores = [], []
    for _ in range(25):
        verdict = model.step(tables, _lines([0.0] * n))
        nats.append(verdict.evidence["silence"])
        scores.append(verdict.record_score)
    absent = np.array(nats) >= 20
    assert absent.any()
    assert not absent.all()
    np.testing.assert_array_equal(np.array(scores) > 0, absent)


def test_of_the_history_of_surprise_at_the_mix_a_five_thousandth_is_forgotten_a_window() -> None:
    rng, model = np.random.default_rng(0), Templates(TemplateConfig())
    tables = model.new_tables(1, 2, 2, 1)

    def window(counts: list[float]) -> LogWindow:
        return LogWindow(ROW, ROW, np.arange(2), np.zeros(2, np.int64), np.arange(2), np.array(counts))

    for _ in range(200):
        model.step(tables, window(rng.poisson([20.0, 10.0]).tolist()))
    tables.entities["mix.shape"][0] = 1005.0
    model.step(tables, window([20.0, 10.0]))
    assert tables.entities["mix.shape"][0] == pytest.approx(5 + 1000 * (1 - 1 / 5000), rel=1e-6)


def test_the_edge_of_the_tail_falls_to_half_of_where_it_began_and_no_further() -> None:
    calibration = TailCalibration(edge=4.0, scale=1.0)
    state = calibration.new_state(1)
    view = Rows(state, ROW, "")
    for _ in range(3000):
        calibration.learn(view, calibration.evidence(view, np.zeros(1))[1], np.array([True]))
    assert state["edge"][0] == pytest.approx(2.0)


def test_a_6500th_of_what_is_known_is_forgotten_a_window_however_unusual_the_last_windows_were() -> None:
    """And what is far out counts less than once."""
    rng, detector = np.random.default_rng(0), Detector(DetectorConfig())
    state = detector.new_state(1)
    for i, value in enumerate(rng.normal(100, 5, 300)):
        detector.learn(state, ROW, np.array([i * STEP]), np.array([value]))
    for mean_evidence in (1.0, 7.0):
        state["window.mean"][0], before = mean_evidence, float(state["level.count"][0])
        verdict = detector.step(state, ROW, np.array([300 * STEP]), np.array([200.0]))
        weight = 11 / verdict.evidence["point"][0]
        assert weight < 0.9
        assert state["level.count"][0] == pytest.approx(before * (1 - 1 / 6500) + weight, rel=1e-7)  # 32 bits
