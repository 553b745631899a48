"""How fast, how long and at which instant: time constants, limits and order of the models, each by its own figure."""

from __future__ import annotations

import numpy as np
import pytest

from models.arrays import Rows
from models.checks import STEP
from models.config import DetectorConfig
from models.detector import Detector
from models.experts.base import Lesson, Step
from models.experts.hour_of_day import HourOfDay
from models.experts.level import Level
from models.experts.log_level import LogLevel
from models.families.beta_binomial import BetaBinomial
from models.families.gamma_poisson import GammaPoisson
from models.multivariate.config import MultivariateConfig
from models.multivariate.machine import Multivariate
from models.regimes.config import RegimesConfig
from models.regimes.kept import SLOTS, Kept
from models.regimes.reference import Reference
from models.verdicts import Kind

ROW = np.array([0])
HOUR = 3_600_000
CHANGES = (Kind.STATE_CHANGE.code, Kind.NEW_NORMAL.code)


def _noise(level: float, steps: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(level, 0.04 * level, steps)


@pytest.mark.parametrize("expert", [Level, LogLevel])
@pytest.mark.parametrize("haste", [0.0, 0.5, 1.0])
def test_when_the_old_level_is_over_2_percent_of_what_was_known_are_forgotten_a_window(
    haste: float, expert: type[Level] | type[LogLevel]
) -> None:
    """The old level counts (1 - f)^k times what its windows count, the new one what is left of its own k windows.

    On the logarithm-like axis the values lie at asinh(value / unit); the unit of a series that begins with 10 is 2.
    """
    config, one = DetectorConfig(), np.ones(1)
    assert config.hurry == 0.02
    learner, n, k = expert(config.level_forget, config.hurry), 1000, 35
    state = learner.new_state(1)
    for i, value in enumerate([10.0] * n + [20.0] * k):
        view, step = Rows(state, ROW, ""), Step(value * one, np.array([float(i)]), ROW, 0 * one, 1e-6 * one)
        memo = learner.predict(view, step, None)[1]
        learner.learn(view, step, Lesson(step.value, one, haste * (value > 10) * one), memo)
    slow, fast = 1 / 4000, 1 / 4000 + 0.02 * haste
    old = sum((1 - slow) ** i for i in range(n)) * (1 - fast) ** k
    new = sum((1 - fast) ** i for i in range(k))
    before, after = (10.0, 20.0) if expert is Level else (np.arcsinh(10 / 2), np.arcsinh(20 / 2))
    assert state["mean"][0] == pytest.approx((before * old + after * new) / (old + new), rel=1e-3)


def _shifts(visits: list[float]) -> list[float]:
    """The kept regimes after a series was in some, each known by its shift, one after the other."""
    kept = Kept(2.0, 0.1)
    state = kept.new_state(1)
    here = Rows(state, ROW, "")
    for number, shift in enumerate(visits, 1):
        known = kept.read(here)
        held = np.flatnonzero((known.shift[0] == shift) & (known.used[0] >= 0))
        slot = held[:1] if len(held) else kept.place_for_new(known)
        kept.switch(here, known, slot, np.array([shift]), np.array([100.0 * number]), ROW == 0)
    return sorted(state["shift"][0].tolist())


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


def test_an_outage_is_no_new_state_for_six_hours_and_is_taken_for_one_later() -> None:
    assert not np.isin(_outage(5.9), CHANGES).any()
    assert np.isin(_outage(8.0), CHANGES).any()


@pytest.mark.parametrize(("minute", "shares"), [(30, (1.0, 0.0)), (60, (0.5, 0.5)), (75, (0.25, 0.75))])
def test_an_hour_is_known_best_in_its_middle_and_half_at_its_ends(minute: int, shares: tuple[float, float]) -> None:
    """At 12:30 the hour from 12 to 13 speaks alone; at 13:00 it and the next one count alike."""
    time = np.array([12 * HOUR + minute * 60_000])
    reference, one = Reference(RegimesConfig(), "UTC"), np.ones(1)
    told = reference.expect(Rows(reference.new_state(1), ROW, ""), one, time, 1e-3 * one, one)
    assert told.bins[:, 0].tolist() == ([12, 13] if minute < 90 else [13, 14])
    assert told.shares[:, 0].tolist() == pytest.approx(shares)
    expert = HourOfDay(0.0, 0.0, "UTC")
    detector = Detector(DetectorConfig(timezone="UTC"))
    state = detector.new_state(1)
    monday = 4 * 24 * HOUR
    detector.learn(state, ROW, monday + time, np.array([50.0]))
    counts = state[f"{expert.name}.count"][0]
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
    known, rng, trials = BetaBinomial.empty(1), np.random.default_rng(0), np.full(1, 1000.0)
    for _ in range(300):
        known = known.learn(rng.binomial(1000, 0.01, 1) / 1000, trials, 1.0, 0.0)
    before, after = known.correlation(), known.learn(np.ones(1), trials, 1.0, 0.0).correlation()
    assert 0 < float((after - before)[0]) <= 1 / 311


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


def test_after_a_gap_of_more_than_three_steps_the_window_before_says_nothing() -> None:
    assert _surprise(1) == pytest.approx(_surprise(3), rel=1e-6), "a fall to the mean at once is unusual"
    assert _surprise(4) < 0.7 * _surprise(1)
    assert _surprise(4) == pytest.approx(_surprise(100), rel=1e-6)
