"""Kinds of news: what is an anomaly, what a new normal, and what is known from before."""

from collections.abc import Callable

import numpy as np
import pytest

from models.config import DetectorConfig
from models.detector import Detector
from models.records import constants, record_of
from models.regimes import regimes
from models.regimes.challenger import challenger_of, heavy
from models.regimes.config import RegimesConfig
from models.regimes.incident import CurrentValue
from models.regimes.kept import SLOTS, place_for_new, recall_gain, switch_to
from models.regimes.reference import Expected
from models.regimes.regimes import _is_daily
from models.regimes.silence import NEVER_DUE, Silence, due, learn_silence
from models.verdicts import Kind, Verdicts
from tests.models.contracts import STEP, Model, run
from tests.models.regime_contracts import CONTRACTS, the_threshold_changes_no_learning

BLIND = RegimesConfig(start=1e9, jump=1e9)
"""With which no incident of regimes ever begins."""


@pytest.mark.parametrize("contract", CONTRACTS, ids=lambda contract: contract.__name__)
def test_the_detector_keeps_the_contract(contract: Callable[[Model], None]) -> None:
    contract(Detector(DetectorConfig()))


def test_the_threshold_is_no_part_of_what_is_learned() -> None:
    the_threshold_changes_no_learning(Detector(DetectorConfig(threshold=20)), Detector(DetectorConfig(threshold=80)))


def _run(values: np.ndarray) -> list[Kind]:
    detector = Detector(DetectorConfig())
    state, row = detector.new_state(1), np.array([0])
    verdicts = [detector.step(state, row, np.array([i * STEP]), values[i : i + 1]) for i in range(len(values))]
    return [list(Kind)[int(verdict.kind[0])] for verdict in verdicts]


def test_a_leak_is_no_new_normal() -> None:
    rng = np.random.default_rng(0)
    values = rng.normal(100, 2, 1000)
    values[800:900] *= 1 + 0.8 * np.arange(100) / 100
    kinds = _run(values)
    assert Kind.ANOMALY in kinds[800:900]
    assert not {Kind.STATE_CHANGE, Kind.NEW_NORMAL} & set(kinds[800:])


def _of_its_own(verdicts: list[Verdicts]) -> list[float]:
    """The scores but for windows that departed from the recent ones: these ask the reference, too."""
    return [float(verdict.record_score[0]) if verdict.evidence["departure"][0] < 10 else -1.0 for verdict in verdicts]


def test_what_is_found_of_regimes_changes_no_score() -> None:
    rng = np.random.default_rng(0)
    values = np.concatenate([rng.normal(100, 4, 400), rng.normal(300, 12, 150), rng.normal(100, 4, 50)])
    ours, blind = Detector(DetectorConfig()), Detector(DetectorConfig(), BLIND)
    scores = [_of_its_own(run(model, values[:, None])[0]) for model in (ours, blind)]
    assert scores[0] == scores[1]


def test_an_outage_is_unlearned_when_it_ends_and_changes_no_score_before() -> None:
    rng = np.random.default_rng(0)
    first, back = 400, 424
    values = np.concatenate([rng.normal(100, 4, first), np.zeros(back - first), rng.normal(100, 4, 60)])
    ours, blind = Detector(DetectorConfig()), Detector(DetectorConfig(), BLIND)
    scores = [_of_its_own(run(model, values[:, None])[0]) for model in (ours, blind)]
    state, rows, usual, unlearned = ours.new_state(1), np.array([0]), {}, []
    for i, value in enumerate(values):
        if i == first:
            usual = {
                name: state[name].copy() for name in ("level.mean", "level.squares", "log_level.mean", "record.low")
            }
        ours.step(state, rows, np.array([i * STEP]), np.array([value]))
        if usual and all(np.array_equal(state[name], before) for name, before in usual.items()):
            unlearned.append(i)
    assert len(unlearned) == 1, "what was typical before the outage is typical again, bit for bit, once"
    (end,) = unlearned
    assert back <= end < back + 6, "as soon as values have returned"
    assert scores[0][: end + 1] == scores[1][: end + 1]
    assert scores[0][end + 1 :] != scores[1][end + 1 :], "a model that learned the outage judges otherwise"


def test_the_regime_not_seen_for_longest_makes_place() -> None:
    regime = record_of(regimes.new_state(1))
    for seen in range(1, SLOTS + 2):
        switch_to(regime, place_for_new(regime), float(seen), 100.0 * seen)
    assert sorted(regime.shift.tolist()) == [2.0, 3.0, 4.0, 5.0]


def test_a_regime_known_from_before_may_lie_a_tenth_of_its_distance_beside_where_it_was() -> None:
    """A value at its very place speaks the less for it the further away it is: ln sqrt(1 + (0.1 distance / scale)²)."""
    config = constants(all=RegimesConfig(recall_most=1000.0, tolerance=0.1)).all
    for scale, distance in ((0.5, 3.0), (2.0, 40.0)):
        gains = []
        for away in (0.0, distance):
            regime = record_of(regimes.new_state(1))
            other = place_for_new(regime)
            switch_to(regime, other, away, 100.0)
            switch_to(regime, 0, 0.0, 200.0)
            gains.append(recall_gain(config, regime, other, away, scale) + heavy(away / scale))
        assert gains[0] - gains[1] == pytest.approx(0.5 * np.log(1 + (0.1 * distance / scale) ** 2))


def _due(times: list[int], bar: float = 10.0) -> int:
    silence = Silence(10.0, 1 / 5000, bar)
    given, heard = constants(all=silence).all, record_of(silence.new_state(1))
    for time in times:
        learn_silence(given, heard, time, False)
    return int(due(given, heard))


def test_what_reports_at_irregular_times_is_never_missed() -> None:
    steps = np.random.default_rng(0).exponential(60_000, 500).astype(np.int64) + 1
    assert _due(np.cumsum(steps).tolist()) == NEVER_DUE


def test_what_often_loses_windows_is_missed_later() -> None:
    every = np.arange(1, 2001) * 60_000
    lossy = every[np.random.default_rng(0).random(2000) > 0.2]
    assert _due(every.tolist()) - every[-1] <= 4 * 60_000
    assert _due(lossy.tolist()) - lossy[-1] > 4 * 60_000


def test_a_higher_bar_waits_longer() -> None:
    every = (np.arange(500) * 60_000).tolist()
    assert _due(every, bar=20.0) > _due(every, bar=10.0)


def _many(*parts: tuple[int, float], regimes: RegimesConfig | None = None) -> np.ndarray:
    """Kinds of 20 series of noise, part after part so many windows and standard deviations away: (20, windows).

    What an incident turned out to be stands at the window at which that is known.
    """
    shift = np.concatenate([np.full(windows, away) for windows, away in parts])
    values = 100 + 2 * (np.random.default_rng(3).normal(size=(20, len(shift))) + shift)
    detector, rows = Detector(DetectorConfig(), regimes), np.arange(20)
    state = detector.new_state(20)
    verdicts = [detector.step(state, rows, np.full(20, i * STEP), v) for i, v in enumerate(values.T)]
    return np.stack([np.where(v.turned >= 0, v.turned, v.kind) for v in verdicts], axis=1)


def test_small_deviations_that_add_up_are_told_and_are_over_when_they_end() -> None:
    parts = (600, 0.0), (24, 3.7), (40, 0.0)
    after, blind = _many(*parts)[:, 600:], _many(*parts, regimes=BLIND)[:, 600:]
    told, scored = ((kinds[:, :24] == Kind.ANOMALY.code).any(axis=1) for kinds in (after, blind))
    over = (after[:, 24:] == Kind.RECOVERED.code).sum(axis=1) == 1
    assert told.mean() >= scored.mean() + 0.3
    assert over[told].mean() >= 0.7
    assert not np.isin(after, (Kind.STATE_CHANGE.code, Kind.NEW_NORMAL.code)).any()


def test_a_small_change_is_accepted_and_known_when_it_comes_again() -> None:
    new = _many((600, 0.0), (150, 4.5), (150, 0.0), (60, 4.5))[:, 600:] == Kind.NEW_NORMAL.code
    assert new[:, :60].any(axis=1).mean() >= 0.9
    assert new[:, 150:155].any(axis=1).mean() >= 0.8
    assert new[:, 300:305].any(axis=1).mean() >= 0.8


def test_what_comes_back_quietly_again_and_again_is_a_habit_and_told_three_times_only() -> None:
    """The fourth quiet return within a month's memory is what the series does, like the turns of traffic."""
    turns = [(150, 0.0), (150, 4.5)] * 4
    new = _many((600, 0.0), (150, 4.5), *turns)[:, 600:] == Kind.NEW_NORMAL.code
    told = np.stack([new[:, begin : begin + 150].any(axis=1) for begin in range(0, new.shape[1], 150)], axis=1)
    assert told[:, 1:4].mean() >= 0.8, "it is told when it comes back three times"
    assert told[:, 4:].mean() <= 0.1
    always = _many((600, 0.0), (150, 4.5), *turns, regimes=RegimesConfig(habit=1000.0))[:, 1200:]
    assert (always == Kind.NEW_NORMAL.code).any(axis=1).mean() >= 0.9, "without a habit it is told each time"


def test_what_the_hour_of_the_days_before_explains_is_no_return_unless_the_return_itself_taught_it() -> None:
    """The reference misses the value by 1; the hour by 0.1, from 40 values before 5, then by too much or of too few."""
    value = CurrentValue(2.0, 10.0, 50.0, 1.0, 1e4, 0, True, True, at_hour=2.1, visits=40.0)
    told = Expected(2.0, 1.0, 0.2, 1e-6, 1.0, 1.0)
    assert _is_daily(value, told, challenger_of(1.0)._replace(number=5.0))
    assert not _is_daily(value, told, challenger_of(1.0)._replace(number=25.0))
    assert not _is_daily(value._replace(at_hour=2.8), told, challenger_of(1.0)._replace(number=5.0))
