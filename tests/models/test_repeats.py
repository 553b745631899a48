"""Repeats: evidence that does not exceed the strongest recent evidence counts less as news."""

from __future__ import annotations

import numpy as np

from models.evidence.repeats import NEVER, Repeats, damp, learn_repeats, unrest
from models.records import Record, constants, record_of

REPEATS = Repeats(notable=7.5, rest=20, damping=0.3, calm=5)
GIVEN = constants(repeats=REPEATS).repeats


def _new() -> Record:
    return record_of(REPEATS.new_state(1))


def _learn(repeats: Record, evidence: float, time: int) -> None:
    course = unrest(GIVEN, repeats, evidence >= REPEATS.notable, evidence, False)
    learn_repeats(GIVEN, repeats, evidence, time, course, NEVER)


def _damped(evidence: list[float]) -> list[float]:
    repeats, result = _new(), []
    for step, piece in enumerate(evidence):
        result.append(damp(GIVEN, repeats, piece))
        _learn(repeats, piece, step)
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


def test_an_unrest_has_an_onset_until_it_is_calm() -> None:
    repeats = _new()
    for step, piece in enumerate([0.0, 9.0, 0.0, 9.0]):
        _learn(repeats, piece, step)
    assert repeats.onset == 1
    for step in range(4, 10):
        _learn(repeats, 0.0, step)
    assert repeats.onset == NEVER
