"""A history that is judged in one call: as value by value, but for what must not be learned."""

from __future__ import annotations

import numpy as np

from models.config import DetectorConfig
from models.detector import Detector
from models.numbers.arrays import Array

STEP, SERIES = 60_000, 3


def values() -> Array:
    """A series with a spike, one with a new level that lasts, and one that is now and then missing; shape (n, 3)."""
    rng = np.random.default_rng(4)
    made = rng.normal(100.0, 4.0, (500, SERIES))
    made[400:406, 0] += 80.0
    made[300:, 1] += 70.0
    made[::7, 2] = np.nan
    return made


def test_how_series_stand_is_said_of_each_value_and_not_of_the_last_only() -> None:
    every, detector = values(), Detector(DetectorConfig())
    rows, times = np.tile(np.arange(SERIES), len(every)), np.repeat(np.arange(len(every)) * STEP, SERIES)
    verdicts, standing = detector.steps(detector.new_state(SERIES), rows, times, every.reshape(-1))
    state, one, levels = detector.new_state(SERIES), np.arange(SERIES), []
    for number, row in enumerate(every):
        verdict = detector.step(state, one, np.full(SERIES, number * STEP), row)
        now = slice(number * SERIES, (number + 1) * SERIES)
        assert verdicts.part(now).record_score.tolist() == verdict.record_score.tolist()
        assert standing.onset[now].tolist() == detector.onset(state, one).tolist()
        assert standing.values[now].tolist() == state["seen"].tolist()
        assert standing.regime[now].tolist() == state["regime.active"].tolist()
        levels.append(standing.levels[now])
    assert standing.onset.reshape(-1, SERIES)[402].tolist()[0] == 400 * STEP
    before, after = levels[299][1], levels[-1][1]
    assert np.isfinite(before).sum() == 1
    assert np.isfinite(after).sum() == 2  # the level of before is still known
    np.testing.assert_allclose(before[np.isfinite(before)], 100.0, rtol=0.05)
    np.testing.assert_allclose(sorted(after[np.isfinite(after)]), [100.0, 170.0], rtol=0.05)


def test_a_value_that_may_not_be_learned_is_judged_and_changes_nothing() -> None:
    history, detector = values()[:, 0], Detector(DetectorConfig())
    taught = np.ones(len(history), np.bool_)
    taught[250:280] = False
    rows, times = np.zeros(len(history), np.int64), np.arange(len(history)) * STEP
    with_them, without = detector.new_state(1), detector.new_state(1)
    verdicts, standing = detector.steps(with_them, rows, times, history, taught=taught)
    detector.steps(without, rows[taught], times[taught], history[taught])
    assert set(standing.values[250:280].tolist()) == {250.0}
    assert np.isfinite(verdicts.record_score[250:280]).all()
    assert len(set(verdicts.record_score[250:280].tolist())) > 1
    for name, column in with_them.items():
        np.testing.assert_array_equal(column, without[name], name)
