"""All metrics of a machine together, by hand: the strongest of them, none of them, and who gets which share."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from models.config import DetectorConfig
from models.machine.joined import Joined, JoinedVerdicts, Windows

STEP = 60_000


def _last(evidence: list[float], judgeable: list[bool] | None = None) -> JoinedVerdicts:
    """The verdict on such a window after 60 quiet ones of one machine."""
    joined, n, quiet = Joined(DetectorConfig()), len(evidence), 60
    there = np.concatenate([np.ones(n * quiet, np.bool_), judgeable if judgeable is not None else [True] * n])
    verdicts = joined.join(joined.new_state(1), _windows(quiet + 1, n), np.array([0.5] * n * quiet + evidence), there)
    return replace(verdicts, shares=verdicts.shares[-n:])


def _windows(m: int, metrics: int) -> Windows:
    return Windows(np.zeros(m, np.int64), STEP * np.arange(m), metrics * np.arange(m + 1))


@pytest.mark.parametrize("metrics", [1, 2, 5, 20])
def test_the_strongest_of_n_metrics_counts_as_much_less_as_n_tries_are_worth(metrics: int) -> None:
    """Bonferroni: the chance that one of n is so strange is at most n times its own."""
    verdict = _last([12.0] + [0.5] * (metrics - 1)).verdicts
    assert verdict.evidence["strongest"][-1] == pytest.approx(12 - np.log(metrics))


def test_metrics_without_a_word_to_say_have_equal_shares() -> None:
    assert _last([0.0] * 4).shares.tolist() == [0.25] * 4
    assert _last([3.0, 1.0, 0.0, 0.0]).shares.tolist() == [0.75, 0.25, 0.0, 0.0]


def test_a_machine_none_of_whose_metrics_is_judged_is_no_news() -> None:
    verdict = _last([0.0, 0.0], [False, False]).verdicts
    assert (verdict.record_score[-1], verdict.probability[-1]) == (0.0, 1.0)
    assert all(channel[-1] == 0 for channel in verdict.evidence.values())


def test_a_window_none_of_whose_metrics_is_judged_changes_nothing_that_is_known_of_the_machine() -> None:
    joined, state = Joined(DetectorConfig()), Joined(DetectorConfig()).new_state(1)
    joined.join(state, _windows(60, 2), np.full(120, 9.0), np.ones(120, np.bool_))
    before = {name: column.copy() for name, column in state.items()}
    joined.join(state, _windows(5, 2), np.full(10, 90.0), np.zeros(10, np.bool_))
    joined.join(state, _windows(5, 2), np.full(10, 90.0), np.ones(10, np.bool_), taught=np.zeros(5, np.bool_))
    assert all((state[name] == before[name]).all() for name in state)


def test_windows_of_two_machines_in_one_call_are_judged_as_one_by_one_and_so_are_copies_of_their_state() -> None:
    """The state of the second way is handed on as copied columns, as it is when it was read from a table."""
    joined, rng, metrics = Joined(DetectorConfig()), np.random.default_rng(2), 3
    m = 120
    entity, time = np.arange(m) % 2, STEP * (np.arange(m) // 2)
    evidence = rng.exponential(1.0, (m, metrics)) + 14.0 * (np.arange(m) > 100)[:, None]
    at_once = joined.new_state(2)
    whole = joined.join(
        at_once, Windows(entity, time, metrics * np.arange(m + 1)), evidence.reshape(-1), evidence.reshape(-1) >= 0
    )
    state, scores = joined.new_state(2), []
    for i in range(m):
        state = {name: column.copy() for name, column in state.items()}
        window = Windows(entity[i : i + 1], time[i : i + 1], np.array([0, metrics]))
        scores.append(joined.join(state, window, evidence[i], evidence[i] >= 0).verdicts.record_score[0])
    np.testing.assert_array_equal(whole.verdicts.record_score, scores)
    assert max(scores) > 50
    for name, column in at_once.items():
        np.testing.assert_array_equal(column, state[name], err_msg=name)
