"""What the metrics of a machine say of one another's changes: most decide for the rest."""

import numpy as np
import pytest

from models.config import DetectorConfig
from models.detector import Detector, Owners
from models.numbers.arrays import Array, Flags, Ints
from models.records import Record, record_of
from models.regimes import company
from models.regimes.company import begin, count, listen
from models.verdicts import Kind
from tests.models.contracts import STEP

PATIENCE = 150.0
QUIET, CHANGE = 500, 130
METRICS = 5
GONE = -50.0
"""Stands for values of 0, so many standard deviations away."""

NEW_NORMAL = Kind.NEW_NORMAL.code


def _kinds_of(shifts: list[list[float]], together: bool, order: Ints | None = None) -> tuple[Ints, Flags]:
    """Kinds and open incidents of the metrics of a machine, each of shape (windows, metrics).

    Args:
        shifts: For each part of the time after `QUIET` windows how many standard deviations each metric is away from
            where it was.
        together: Whether the metrics are known to be those of one machine.
        order: The order of the metrics within a window.
    """
    rng, order = np.random.default_rng(4), np.arange(METRICS) if order is None else order
    away = np.repeat(np.array([[0.0] * METRICS, *shifts]), [QUIET, *[CHANGE] * len(shifts)], axis=0)
    values = np.where(away == GONE, 0.0, 100 + 2 * (rng.normal(size=away.shape) + away))
    windows = len(values)
    detector = Detector(DetectorConfig())
    state, machine = detector.new_state(METRICS), detector.new_machines(1)
    rows, time = np.tile(order, windows), np.repeat(np.arange(windows) * STEP, METRICS)
    owners = Owners(machine, np.zeros(windows * METRICS, np.int64)) if together else None
    verdicts, standing = detector.steps(state, rows, time, values[:, order].ravel(), owners=owners)
    back = np.argsort(order)
    kinds, onset = (each.reshape(windows, METRICS)[:, back] for each in (verdicts.kind, standing.onset))
    return kinds[QUIET:], (onset != -1)[QUIET:]


def _accepted(kinds: Ints) -> Array:
    """Windows from the change to the new normal of each metric; infinite where there is none."""
    said = kinds == NEW_NORMAL
    return np.where(said.any(axis=0), said.argmax(axis=0) + 1, np.inf)


CLEAR, WEAK, SLIGHT = 8.0, 3.9, 2.9
"""Shifts in standard deviations: one accepted by itself, one that stays undecided for longer, and one below the three
that a level of its own must have."""


def test_once_most_of_a_machines_metrics_have_a_new_normal_the_others_have_it_in_the_next_window() -> None:
    shifts = [[CLEAR, CLEAR, CLEAR, WEAK, WEAK]]
    alone, together = (_kinds_of(shifts, known) for known in (False, True))
    decided = np.sort(_accepted(alone[0]))[2]
    assert np.all(_accepted(together[0])[:3] == _accepted(alone[0])[:3]), "what is clear needs no others"
    assert not together[1][int(decided) + 1 :].any(), "no incident of the machine outlives the change"
    assert alone[1][int(decided) + 1 :, 3:].any(), "by themselves they would be undecided for longer"


def test_a_minority_decides_nothing_for_the_others() -> None:
    shifts = [[CLEAR, *[WEAK] * 4]]
    alone, together = (_kinds_of(shifts, known) for known in (False, True))
    first = int(_accepted(alone[0])[0])
    np.testing.assert_array_equal(together[0][: first + 1], alone[0][: first + 1])
    assert _accepted(together[0])[0] == first


def test_a_machine_that_is_dead_but_for_two_metrics_has_no_new_normal() -> None:
    kinds, _ = _kinds_of([[CLEAR, CLEAR, GONE, GONE, GONE]], True)
    assert np.isfinite(_accepted(kinds)[:2]).all()
    assert np.isinf(_accepted(kinds)[2:]).all(), "an outage is no new normal because other metrics have one"


def test_metrics_that_hardly_show_it_are_back_in_a_known_regime_with_the_others() -> None:
    shifted = [CLEAR, CLEAR, CLEAR, CLEAR, SLIGHT]
    there_and_back = [shifted, [0.0] * METRICS, shifted]
    alone, together = (_kinds_of(there_and_back, known)[0][2 * CHANGE :] for known in (False, True))
    assert np.all(_accepted(together)[:4] <= 5)
    assert _accepted(together)[4] <= 6
    assert _accepted(alone)[4] > _accepted(together)[4]


@pytest.mark.parametrize("seed", range(3))
def test_the_order_of_the_metrics_within_a_window_is_irrelevant(seed: int) -> None:
    shifted = [CLEAR, CLEAR, CLEAR, WEAK, 4.0]
    shifts = [shifted, [0.0] * METRICS, shifted]
    order = np.random.default_rng(seed).permutation(METRICS)
    for one, other in zip(_kinds_of(shifts, True), _kinds_of(shifts, True, order), strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_machine_of_one_metric_is_judged_as_if_it_were_alone() -> None:
    rng = np.random.default_rng(0)
    values = 100 + 2 * (rng.normal(size=900) + np.where(np.arange(900) % 300 < 150, 0.0, CLEAR))
    detector, time = Detector(DetectorConfig()), np.arange(900) * STEP
    rows = np.zeros(900, np.int64)
    alone = detector.steps(detector.new_state(1), rows, time, values)[0]
    with_owner = detector.steps(
        detector.new_state(1), rows, time, values, owners=Owners(detector.new_machines(1), rows)
    )[0]
    for name, column in alone.arrays().items():
        np.testing.assert_array_equal(with_owner.arrays()[name], column)


def _machine(opened: int, *left: float) -> Record:
    """A machine at time 30 of whose incidents, begun at 10, some ended in another regime at 20.

    Args:
        opened: How many incidents began.
        left: For each that ended, how many values before its series had left that regime; -1: the regime is a new one.
    """
    machine = record_of(company.new_state(1))
    begin(machine, 10)
    for _ in range(opened):
        count(machine, False, True, 10, False, -1.0)
    begin(machine, 20)
    for ago in left:
        count(machine, True, False, 10, True, ago)
    begin(machine, 30)
    return machine


def test_an_incident_that_began_after_the_machine_had_changed_is_asked_by_itself() -> None:
    machine = _machine(4, -1.0, -1.0)
    assert listen(machine, 10, PATIENCE).accepts
    assert not listen(machine, 25, PATIENCE).accepts
    assert not listen(machine, -1, PATIENCE).accepts


def test_one_metric_alone_never_decides() -> None:
    assert not listen(_machine(1, -1.0), 10, PATIENCE).settles


def test_a_known_regime_is_looked_for_where_most_have_come_back_to_one_and_not_for_ever() -> None:
    machine = _machine(3, 90.0, 92.0)
    assert listen(machine, -1, PATIENCE).left == 93.0  # a window later
    assert listen(machine, -1, PATIENCE).since == 10
    for window in range(4, 300):
        begin(machine, 10 * window)
    assert listen(machine, -1, PATIENCE).left == -1.0
