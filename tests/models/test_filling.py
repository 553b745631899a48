"""Forecasts of when something is full: exact lines, what never fills, and what has no bound."""

from __future__ import annotations

import numpy as np
import pytest

from models.filling.filling import FORECAST, Course, Filling
from models.numbers.arrays import Array
from models.records import Table

HOUR, STEP = 3_600_000, 300_000


def forecasts(room: Array, within: int = 24 * HOUR, span: float = 100.0) -> Table:
    """The forecasts after each value of one series, a value every five minutes."""
    filling, n = Filling(), len(room)
    rows, time = np.zeros(n, np.int64), np.arange(n) * STEP
    return filling.step(filling.new_state(1), rows, time, room, np.full(n, span), np.full(n, within))


def line(hours: float, left: float, noise: float = 0.0) -> Array:
    """Room that shrinks in a straight line, full after so many hours, of which all but ``left`` have gone by."""
    time = np.arange(int((hours - left) * HOUR / STEP)) * STEP / HOUR
    return 50.0 * (1 - time / hours) + noise * np.random.default_rng(3).normal(size=len(time))


@pytest.mark.parametrize("noise", [0.0, 0.05, 0.3])
def test_the_interval_of_a_straight_line_holds_the_time_at_which_it_crosses(noise: float) -> None:
    made = forecasts(line(400, 30, noise))
    for one in made[3 * 288 :: 200]:
        assert one["earliest"] <= 400 * HOUR + STEP
        assert one["latest"] == -1 or one["latest"] >= 400 * HOUR - STEP
    assert abs(made[-1]["median"] - 400 * HOUR) < 4 * HOUR
    assert made[-1]["slope"] == pytest.approx(50 / 400, rel=0.1)


def test_it_is_told_once_that_it_will_be_full_and_the_end_when_there_is_room() -> None:
    filling = line(100, 3, 0.02)
    room = np.concatenate([filling, filling[-1] + 60 + 0.02 * np.random.default_rng(4).normal(size=3 * 288)])
    made = forecasts(room)
    courses = made["course"].tolist()
    assert courses.count(Course.BEGINS) == courses.count(Course.ENDS) == 1
    assert courses.index(Course.BEGINS) < len(filling) <= courses.index(Course.ENDS)
    told = made[courses.index(Course.BEGINS)]
    assert told["latest"] - courses.index(Course.BEGINS) * STEP <= 24 * HOUR
    assert courses.count(Course.CHANGES) < 12, "what changes little is not told again"


@pytest.mark.parametrize("spread", [0.0, 0.1, 3.0])
def test_what_only_fluctuates_is_never_told(spread: float) -> None:
    room = 12.0 + spread * np.random.default_rng(5).normal(size=14 * 288).clip(-3, 3)
    assert set(forecasts(room)["course"].tolist()) == {Course.NOTHING}


def test_what_is_full_from_the_beginning_is_no_news() -> None:
    made = forecasts(np.zeros(300))
    assert set(made["course"].tolist()) == {Course.NOTHING}
    assert set(made["latest"].tolist()) == {-1}


def test_what_goes_beyond_its_bound_has_none() -> None:
    made = forecasts(60 - np.arange(2 * 288) * STEP / HOUR * 2)  # is full after 30 hours, and rises on
    assert Course.BEGINS in made["course"].tolist()
    after = made[(30 + 2) * 12 :]
    assert set(after["latest"].tolist()) == {-1}
    assert made[-1]["since"] == -1
    assert made["course"].tolist().count(Course.ENDS) == 1


def test_values_one_at_a_time_give_the_same_as_all_at_once_and_missing_ones_change_nothing() -> None:
    room = line(60, 5, 0.2)
    room[100:110] = np.nan
    whole, model, n = forecasts(room), Filling(), len(room)
    state, single = model.new_state(2), np.zeros(n, FORECAST)
    for i in range(n):
        single[i : i + 1] = model.step(
            state, np.ones(1, np.int64), np.array([i * STEP]), room[i : i + 1], np.full(1, 100.0), np.array([24 * HOUR])
        )
    assert whole.tobytes() == single.tobytes() or all(
        np.array_equal(whole[name], single[name], equal_nan=True) for name in FORECAST.names or ()
    )


def test_a_saw_that_never_comes_near_is_not_told_once_its_teeth_are_known() -> None:
    day = np.arange(20 * 288) % 288 / 288
    made = forecasts(100 - (40 + 45 * day))
    assert Course.BEGINS not in made["course"][4 * 288 :].tolist()


@pytest.mark.parametrize("wrong", [100.0, 1e15, 18446744073709551615.0, 1e30, 1e300])
def test_one_value_with_much_room_changes_nothing(wrong: float) -> None:
    room = line(110, 10, 0.05)
    made = forecasts(np.insert(room, 120, wrong))
    wanted = forecasts(np.insert(room, 120, np.nan))
    assert made[121:].tobytes() == wanted[121:].tobytes()


@pytest.mark.parametrize("wrong", [18446744073709551615.0, 1e300])
@pytest.mark.parametrize("first", [0, 120])
def test_what_no_store_has_is_no_value_however_often(wrong: float, first: int) -> None:
    room = 5e11 * line(110, 10, 0.05)
    at = np.full(10, first)
    made, wanted = (forecasts(np.insert(room, at, each), span=np.nan) for each in (wrong, np.nan))
    for name in ("earliest", "median", "latest", "course"):
        assert made[name].tolist() == wanted[name].tolist()
    assert made[-1]["median"] > 0


def test_what_is_full_is_told_once_and_not_with_each_window() -> None:
    room = np.append(line(60, 0, 0.01), np.zeros(2 * 288)).clip(0)
    full = forecasts(room)[-2 * 288 :]
    assert set(full["earliest"] - np.arange(len(room))[-2 * 288 :] * STEP) == {0}
    assert full["course"].tolist().count(Course.CHANGES) <= 2 * 4 + 1, "every six hours, so that the incident goes on"
    flapping = np.append(line(60, 0, 0.01), np.tile([0.0, 0.1], 288)).clip(0)
    assert forecasts(flapping)[-2 * 288 :]["course"].tolist().count(Course.CHANGES) <= 2 * 24 * 2


@pytest.mark.parametrize("lasts", [1, 2])
@pytest.mark.parametrize("seed", range(3))
def test_spikes_that_nearly_reach_the_bound_are_not_told(lasts: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    room = 60.0 + rng.normal(size=20 * 288)
    for at in rng.integers(288, len(room) - 10, 8):
        room[at : at + lasts] = np.linspace(6, 0.5, lasts)
    made = forecasts(room)
    assert set(made["course"].tolist()) == {Course.NOTHING}
    assert set(made["latest"].tolist()) == {-1}


def test_what_begins_to_fill_within_twelve_hours_is_told_half_an_hour_before() -> None:
    quiet = 60.0 + 0.1 * np.random.default_rng(1).normal(size=3 * 288)
    made = forecasts(np.concatenate([quiet, 60 - 60 * np.arange(1, 145) / 144]))
    assert len(made) - made["course"].tolist().index(Course.BEGINS) > 6


@pytest.mark.parametrize("watched", [8, 30, 90])
def test_no_latest_time_lies_further_ahead_than_twice_what_was_watched_or_the_time_to_tell(watched: int) -> None:
    made = forecasts(line(1000, 1000 - watched, 0.01))
    ahead = made["latest"] - np.arange(len(made)) * STEP
    seen = np.arange(len(made)) * STEP
    assert (ahead[made["latest"] >= 0] <= np.maximum(2 * seen, 24 * HOUR)[made["latest"] >= 0]).all()


@pytest.mark.parametrize("days", [20, 60])
def test_what_time_alone_moves_is_told_as_long_before_as_is_asked_for(days: int) -> None:
    room = days * 86_400.0 - np.arange(days * 288) * 300.0
    made = forecasts(room, 14 * 24 * HOUR, np.nan)
    told = made["course"].tolist().index(Course.BEGINS)
    assert (len(room) - told) / 288 > 13.9
    assert made[told]["earliest"] <= days * 24 * HOUR <= made[told]["latest"]
