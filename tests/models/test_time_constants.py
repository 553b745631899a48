"""How fast, how long and at which instant: time constants, limits and order of the models, each by its own figure."""

from __future__ import annotations

import numpy as np
import pytest

from models.config import DetectorConfig
from models.detector import Detector
from models.experts import level, log_level
from models.experts.base import Lesson
from models.experts.hour_of_day import nearest_hours
from models.experts.level import learn_level
from models.experts.log_level import learn_log_level
from models.families import beta_binomial
from models.families.beta_binomial import correlation, learn_ratio
from models.families.gamma_poisson import GammaPoisson
from models.machine.config import MultivariateConfig
from models.machine.multivariate import Multivariate
from models.records import constants, record_of
from models.regimes import regimes
from models.regimes.kept import SLOTS, place_for_new, switch_to
from models.verdicts import Kind
from tests.models.contracts import STEP

ROW = np.array([0])
HOUR = 3_600_000
CHANGES = (Kind.STATE_CHANGE.code, Kind.NEW_NORMAL.code)


def _noise(level: float, steps: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(level, 0.04 * level, steps)


@pytest.mark.parametrize("raw", [True, False])
def test_a_6500th_of_what_was_known_of_a_level_is_forgotten_a_window(raw: bool) -> None:
    """The old level counts (1 - f)^k times what its windows count, the new one what is left of its own k windows.

    On the logarithm-like axis the values lie at asinh(value / unit); the unit of a series that begins with 10 is 2.
    """
    config, n, k, kept = constants(all=DetectorConfig()).all, 1000, 3500, 1 - 1 / 6500
    learn, state = (
        (learn_level, record_of(level.new_state(1))) if raw else (learn_log_level, record_of(log_level.new_state(1)))
    )
    for value in [10.0] * n + [20.0] * k:
        learn(config, state, value, Lesson(value, 1.0))
    old = sum(kept**i for i in range(n)) * kept**k
    new = sum(kept**i for i in range(k))
    before, after = (10.0, 20.0) if raw else (np.arcsinh(10 / 2), np.arcsinh(20 / 2))
    assert state.mean == pytest.approx((before * old + after * new) / (old + new), rel=1e-3)


def _shifts(visits: list[float]) -> list[float]:
    """The kept regimes after a series was in some, each known by its shift, one after the other."""
    regime = record_of(regimes.new_state(1))
    for number, shift in enumerate(visits, 1):
        held = np.flatnonzero((regime.shift == shift) & (regime.used >= 0))
        switch_to(regime, int(held[0]) if len(held) else place_for_new(regime), shift, 100.0 * number)
    return sorted(regime.shift.tolist())


def test_the_regime_that_makes_place_is_the_one_not_seen_for_longest_and_not_the_oldest_one() -> None:
    assert SLOTS == 4
    assert _shifts([1.0, 2.0, 3.0]) == [0.0, 1.0, 2.0, 3.0]
    assert _shifts([1.0, 2.0, 3.0, 0.0, 4.0]) == [0.0, 2.0, 3.0, 4.0], "0 is the oldest, 1 was left first"
    assert _shifts([1.0, 2.0, 3.0, 1.0, 0.0, 4.0]) == [0.0, 1.0, 3.0, 4.0]


def _outage(hours: float) -> np.ndarray:
    """Codes of what is told of during an outage of so many hours."""
    steps = int(hours * HOUR / STEP)
    detector = Detector(DetectorConfig())
    state, told = detector.new_state(1), []
    for i, value in enumerate(np.concatenate([_noise(100, 600, 1), np.zeros(steps)])):
        verdict = detector.step(state, ROW, np.array([i * STEP]), np.array([value]))
        told += [verdict.kind[0], verdict.turned[0]] if i >= 600 else []
    return np.array(told)


def test_an_outage_is_no_new_state_for_a_day_and_is_taken_for_one_later() -> None:
    assert not np.isin(_outage(23.9), CHANGES).any()
    assert np.isin(_outage(26.0), CHANGES).any()


@pytest.mark.parametrize(("minute", "shares"), [(30, (1.0, 0.0)), (60, (0.5, 0.5)), (75, (0.25, 0.75))])
def test_an_hour_is_known_best_in_its_middle_and_half_at_its_ends(minute: int, shares: tuple[float, float]) -> None:
    """At 12:30 the hour from 12 to 13 speaks alone; at 13:00 it and the next one count alike."""
    time = np.array([12 * HOUR + minute * 60_000])
    hours = nearest_hours(int(time[0]))
    assert (hours.first, hours.second) == (12, 13)
    assert (1 - hours.share, hours.share) == pytest.approx(shares)
    detector = Detector(DetectorConfig(timezone="UTC"))
    state = detector.new_state(1)
    monday = 4 * 24 * HOUR
    detector.learn(state, ROW, monday + time, np.array([50.0]))
    counts = state["hour.count"][0]
    assert counts[[12, 13]].tolist() == pytest.approx(shares)
    assert counts.sum() == pytest.approx(1.0)


def _dispersion(last: float) -> float:
    known, one, rng = GammaPoisson.empty(1), np.ones(1), np.random.default_rng(0)
    for _ in range(300):
        known = known.learn(rng.poisson(50.0, 1).astype(float), one, 1.0, 0.0)
    return float(known.learn(np.array([last]), one, 1.0, 0.0).dispersion()[0])


def test_one_count_however_large_widens_the_band_of_counts_a_little_only() -> None:
    """It counts as a hundred squared deviations among the 310 that are known: variance and a third of it."""
    assert _dispersion(1e6) == pytest.approx(_dispersion(1e9), rel=1e-6)
    assert 1.2 < _dispersion(1e6) / _dispersion(50.0) < 1.5


def test_one_ratio_however_unusual_widens_the_band_of_ratios_a_little_only() -> None:
    """Trials of one window agree in all or in nothing: its estimate of their correlation is 1 at most."""
    state, rng = record_of(beta_binomial.new_state(1)), np.random.default_rng(0)
    for _ in range(300):
        learn_ratio(state, rng.binomial(1000, 0.01) / 1000, 1000.0, 1.0, 0.0)
    before = correlation(state)
    learn_ratio(state, 1.0, 1000.0, 1.0, 0.0)
    assert 0 < correlation(state) - before <= 1 / 311


def _surprise(gap: int) -> float:
    """Evidence of a window so many steps after one in which both metrics were far up; they change slowly."""
    model, rng, n = Multivariate(MultivariateConfig(), 4), np.random.default_rng(0), 40
    state, rows, value = model.new_state(n), np.arange(n), np.zeros((n, 4))
    for step in range(600):
        value = 0.97 * value + 0.24 * rng.normal(size=(n, 4))
        model.step(state, rows, np.full(n, step * STEP), 50 + value)
    model.step(state, rows, np.full(n, 600 * STEP), np.full((n, 4), 52.0))
    verdict = model.score(state, rows, np.full(n, (600 + gap) * STEP), np.full((n, 4), 50.0))
    return float(verdict.evidence["residual"].mean())


def test_after_a_window_that_was_missed_the_one_before_says_nothing() -> None:
    assert _surprise(2) < 0.7 * _surprise(1), "a fall to the mean at once is unusual"
    assert _surprise(2) == pytest.approx(_surprise(100), rel=1e-6)
