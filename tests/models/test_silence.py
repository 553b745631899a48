"""Silence: how many missing windows are told of follows from how often windows were missing before, by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from models.records import constants, record_of
from models.regimes.silence import Silence, due, learn_silence, nats_of_silence

MINUTE = 60_000
UNCOUNTED = 11
"""The first window, and the ten whose distance must be alike before it is known what is usual."""


def _after(steps: list[int], bar: float) -> tuple[int, float]:
    """How many minutes after the last window the silence is announced, and its evidence; steps in minutes."""
    silence = Silence(majority=10.0, forget=0.0, bar=bar)
    given, heard = constants(all=silence).all, record_of(silence.new_state(1))
    times = np.cumsum([0, *steps]) * MINUTE
    for time in times:
        learn_silence(given, heard, time, False)
    return int(due(given, heard) - times[-1]) // MINUTE, nats_of_silence(given, heard)


def _by_hand(first: float, again: float, bar: float) -> tuple[int, float]:
    """The least k with -ln q0 - (k - 1) ln q1 at least at the bar; and these nats."""
    k = next(k for k in range(1, 1000) if -math.log(first) - (k - 1) * math.log(again) >= bar)
    return k, -math.log(first) - (k - 1) * math.log(again)


@pytest.mark.parametrize("bar", [5.0, 10.0, 30.0])
def test_what_never_lost_a_window_is_missed_after_as_many_windows_as_carry_the_evidence(bar: float) -> None:
    """Beforehand 1 of 100 windows is missing, worth 50 windows, and 1 of 3 after a missing one; 500 came, none lost."""
    announced, nats = _after([1] * (500 + UNCOUNTED - 1), bar)
    wanted, evidence = _by_hand(0.5 / 550.5, 1 / 3, bar)
    assert announced == wanted
    assert nats == pytest.approx(evidence, rel=1e-6)


def test_what_loses_two_windows_in_a_row_at_times_is_missed_after_as_many_as_its_own_losses_say() -> None:
    """4,000 windows came, before 40 of them two were missing: q0 is about 1 %, q1 a half; nothing else decides."""
    steps = [1] * (UNCOUNTED - 1) + ([1] * 99 + [3]) * 40
    announced, _ = _after(steps, 30.0)
    wanted, _ = _by_hand(40.5 / 4050.5, 41 / 83, 30.0)
    assert abs(announced - wanted) <= 1


def test_the_usual_time_is_that_of_the_majority_from_the_second_window_on() -> None:
    """What reports every minute and once late is missed by the minute, whatever its first step was."""
    assert _after([7] + [1] * 600, 10.0)[0] == _after([1] * 600, 10.0)[0]
    assert _after([1] * 300 + [2] + [1] * 300, 5.0)[0] == 1


@pytest.mark.parametrize("hours", [1, 24, 24 * 30])
def test_an_outage_does_not_hide_the_next_one_however_long_it_was(hours: int) -> None:
    """Told of after four minutes, it counts as sixteen missing windows at most: q0 is 1.5 in 1,241.5, q1 16/19."""
    day = [1] * 600
    assert _after(day, 10.0)[0] == 4
    announced, _ = _after([*day, hours * 60, *day], 10.0)
    assert announced == _by_hand(1.5 / (50.5 + 1200 - 10 + 1), 16 / 19, 10.0)[0]


def test_what_rests_each_night_is_told_of_a_few_times_and_then_expected() -> None:
    """Eight hours of rest each night, of what reports each minute else: after five nights it is missed after longer."""
    night = [*[1] * 959, 480]
    told = [_after([*night * nights, *[1] * 959], 10.0)[0] < 480 for nights in range(8)]
    assert 3 <= sum(told) <= 5
    assert told == sorted(told, reverse=True)
