"""Contracts of kinds that every detector of single series keeps; each raises `AssertionError`.

As in `tests.models.contracts`; run by `tests/models/test_regimes.py`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from typing import Protocol

import numpy as np

from models.numbers.arrays import Array, Columns, Ints
from models.series.course import Course
from models.verdicts import Kind, SeriesVerdicts
from tests.models.contracts import STEP, Model, run, same_state


class SeriesModel(Model, Protocol):
    """A model of single series, to which operators can say that a level is normal."""

    def accept(self, state: Columns, rows: Ints) -> Array:
        """As of `models.detector.Detector`."""


_NEWS = (Kind.ANOMALY, Kind.STATE_CHANGE, Kind.NEW_NORMAL)
_BEFORE = 600


def _noise(level: float, steps: int, seed: int) -> Array:
    return np.random.default_rng(seed).normal(level, 0.04 * level, steps)


def _verdicts(model: Model, *parts: Array) -> list[SeriesVerdicts]:
    """On each value after the first part, of one series."""
    verdicts = run(model, np.concatenate(parts)[:, None])[0][len(parts[0]) :]
    return [verdict for verdict in verdicts if isinstance(verdict, SeriesVerdicts)]


def _kinds(model: Model, *parts: Array) -> tuple[list[Kind], list[int]]:
    """Kind and onset (in steps) of each value after the first part, of one series."""
    verdicts = _verdicts(model, *parts)
    return [list(Kind)[int(v.kind[0])] for v in verdicts], [int(v.since[0]) // STEP for v in verdicts]


def _turned(verdicts: list[SeriesVerdicts]) -> list[tuple[int, Kind, int]]:
    """At which value, what, and since when (in steps) incidents turned out to be something."""
    news = [(place, int(v.turned[0]), int(v.since[0]) // STEP) for place, v in enumerate(verdicts)]
    return [(place, list(Kind)[code], since) for place, code, since in news if code >= 0]


def a_new_level_is_told_once_and_accepted(model: Model) -> None:
    """One change of state and one new normal, both dated to the onset, within 60 windows; then all is normal."""
    for level in (60.0, 170.0):
        kinds, since = _kinds(model, _noise(100, _BEFORE, 1), _noise(level, 400, 2))
        turned = _turned(_verdicts(model, _noise(100, _BEFORE, 1), _noise(level, 400, 2)))
        counts = Counter(kinds)
        assert counts[Kind.NEW_NORMAL] == 1, counts
        ((changed, what, onset),) = turned
        accepted = kinds.index(Kind.NEW_NORMAL)
        assert what == Kind.STATE_CHANGE
        assert changed < accepted < 60
        assert onset == since[accepted] == _BEFORE
        assert not set(kinds[changed + 1 : accepted]) & {Kind.ANOMALY}
        assert set(kinds[accepted + 1 :]) == {Kind.NORMAL}


def an_incident_is_open_until_it_is_over(model: Model) -> None:
    """From the first value that is told of it is open at each value, dated alike, and closed once."""
    quiet, odd = _noise(100, _BEFORE, 1), _noise(100, 200, 5)
    for parts in ((_noise(170, 200, 2),), (_noise(200, 10, 2), _noise(100, 100, 3)), (np.full(60, 100.0), odd)):
        verdicts = _verdicts(model, quiet, *parts)
        course = [list(Course)[int(v.incident[0])] for v in verdicts]
        kinds = [list(Kind)[int(v.kind[0])] for v in verdicts]
        first = kinds.index(Kind.ANOMALY)
        over = course.index(Course.CLOSED)
        assert set(course[:first]) <= {Course.NONE}
        assert set(course[first:over]) == {Course.OPEN}
        assert set(course[over + 1 :]) == {Course.NONE}
        assert kinds[over] in (Kind.RECOVERED, Kind.NEW_NORMAL)
        assert all(one.since[0] == other.since[0] != -1 for one, other in pairwise(verdicts[first : over + 1]))


def a_label_that_closes_an_incident_is_told_of(model: SeriesModel) -> None:
    """The value after it says that the incident is over, and since when it had been; later ones say nothing."""
    values = np.concatenate([_noise(100, _BEFORE, 1), _noise(170, 5, 2)])[:, None]
    state = run(model, values)[1]
    model.accept(state, np.array([0]))
    assert all(np.isfinite(column).all() for column in state.values()), "an hour that was never met is no number"
    after, _ = run(model, _noise(170, 50, 3)[:, None], state, len(values))
    verdicts = [verdict for verdict in after if isinstance(verdict, SeriesVerdicts)]
    assert list(Kind)[int(verdicts[0].kind[0])] == Kind.NEW_NORMAL
    assert verdicts[0].incident[0] == Course.CLOSED.code
    assert verdicts[0].since[0] == _BEFORE * STEP
    assert {int(verdict.incident[0]) for verdict in verdicts[1:]} == {Course.NONE.code}


def a_surprise_that_ends_is_no_change(model: Model) -> None:
    """A deviation of ten windows is an anomaly, and over soon after it."""
    kinds, since = _kinds(model, _noise(100, _BEFORE, 1), _noise(200, 10, 2), _noise(100, 100, 3))
    assert kinds[0] == Kind.ANOMALY
    assert not set(kinds) & {Kind.STATE_CHANGE, Kind.NEW_NORMAL}
    assert kinds.count(Kind.RECOVERED) == 1
    over = kinds.index(Kind.RECOVERED)
    assert 10 <= over < 20
    assert since[over] == _BEFORE


def an_outage_is_not_learned(model: Model) -> None:
    """Two hours of nothing are no new normal; what was normal still is; the next outage is an anomaly again."""
    down = np.zeros(2 * 3_600_000 // STEP)
    kinds, _ = _kinds(model, _noise(100, _BEFORE, 1), down, _noise(100, 200, 2), down)
    first, after, second = kinds[: len(down)], kinds[len(down) : -len(down)], kinds[-len(down) :]
    for outage in (first, second):
        assert outage[0] == Kind.ANOMALY
        assert not set(outage) & {Kind.STATE_CHANGE, Kind.NEW_NORMAL}
    assert not set(after) & set(_NEWS)
    assert Kind.RECOVERED in after


def a_regime_seen_before_is_recalled(model: Model) -> None:
    """A return to either level is told once, within five windows, and nothing else is; the fourth one is a habit."""
    high, low = 170.0, 100.0
    parts = [_noise(level, 150, seed) for seed, level in enumerate((low, high, low, high), 2)]
    kinds, since = _kinds(model, _noise(low, _BEFORE, 1), *(_noise(high, 150, 9), *parts))
    for turn in (1, 2, 3):  # parts begin with the old level
        returned = kinds[turn * 150 : (turn + 1) * 150]
        assert returned.count(Kind.NEW_NORMAL) == 1
        back = returned.index(Kind.NEW_NORMAL)
        assert back < 5
        assert since[turn * 150 + back] == _BEFORE + turn * 150
        assert not set(returned[back + 1 :]) & set(_NEWS)
    assert not {Kind.NEW_NORMAL, Kind.STATE_CHANGE} & set(kinds[4 * 150 :])


def the_threshold_changes_no_learning(bold: Model, shy: Model) -> None:
    """Two models that differ in their threshold only have the same state after the same values, bit for bit."""
    parts = (_noise(100, _BEFORE, 1), _noise(170, 100, 2), _noise(300, 5, 3), _noise(100, 50, 4), np.full(40, 70.0))
    values = np.concatenate(parts)[:, None]
    same_state(run(bold, values)[1], run(shy, values)[1])


CONTRACTS: list[Callable[[SeriesModel], None]] = [
    a_new_level_is_told_once_and_accepted,
    an_incident_is_open_until_it_is_over,
    a_label_that_closes_an_incident_is_told_of,
    a_surprise_that_ends_is_no_change,
    an_outage_is_not_learned,
    a_regime_seen_before_is_recalled,
]
"""Contracts of one model."""
