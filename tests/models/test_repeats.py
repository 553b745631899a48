"""Repeats: evidence that does not exceed the strongest recent evidence counts less as news."""

import numpy as np

from models.arrays import Rows
from models.evidence.repeats import NEVER, Repeats

REPEATS = Repeats(notable=7.5, rest=20, damping=0.3, calm=5)
ALWAYS = np.array([True])


def _learn(view: Rows, evidence: np.ndarray, time: np.ndarray, valid: np.ndarray) -> None:
    unrest = REPEATS.unrest(view, evidence >= REPEATS.notable, evidence, ~ALWAYS)
    REPEATS.learn(view, evidence, time, valid, unrest)


def _damped(evidence: list[float]) -> list[float]:
    columns = REPEATS.new_state(1)
    view, result = Rows(columns, np.array([0]), ""), []
    for step, piece in enumerate(evidence):
        value = np.array([piece])
        result.append(float(REPEATS.damp(view, value)[0]))
        _learn(view, value, np.array([step]), ALWAYS)
    return result


def test_what_rises_is_never_damped() -> None:
    assert _damped([1.0, 5.0, 5.0, 20.0, 60.0]) == [1.0, 5.0, 5.0, 20.0, 60.0]


def test_a_weaker_repeat_is_damped_until_the_peak_is_forgotten() -> None:
    evidence = [40.0] + [10.0] * 30
    damped = _damped(evidence)
    assert damped[0] == 40.0
    assert damped[1:21] == [7.0] * 20
    assert damped[21] == 10.0


def test_the_order_of_verdicts_is_the_same_whatever_the_unit_of_evidence() -> None:
    evidence = np.random.default_rng(0).exponential(3.0, 500)
    once, twice = np.array(_damped(evidence.tolist())), np.array(_damped((2 * evidence).tolist()))
    np.testing.assert_allclose(twice, 2 * once, rtol=1e-12)


def test_a_missing_value_changes_nothing() -> None:
    columns = REPEATS.new_state(1)
    view = Rows(columns, np.array([0]), "")
    _learn(view, np.array([9.0]), np.array([1]), ALWAYS)
    before = {name: column.copy() for name, column in columns.items()}
    _learn(view, np.array([90.0]), np.array([2]), ~ALWAYS)
    assert all((columns[name] == before[name]).all() for name in columns)


def test_an_unrest_has_an_onset_until_it_is_calm() -> None:
    columns = REPEATS.new_state(1)
    view = Rows(columns, np.array([0]), "")
    for step, piece in enumerate([0.0, 9.0, 0.0, 9.0]):
        _learn(view, np.array([piece]), np.array([step]), ALWAYS)
    assert REPEATS.onset(view, np.array([4]))[0] == 1
    for step in range(4, 10):
        _learn(view, np.zeros(1), np.array([step]), ALWAYS)
    assert columns["onset"][0] == NEVER
