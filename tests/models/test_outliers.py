"""Machines beside their peers: what becomes an outlier, when it ends, and what is none."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import t

from models.config import DetectorConfig
from models.fleet.config import FleetConfig
from models.fleet.outliers import Outliers, _from_start, _Pool
from models.fleet.windows import Members, Outcome
from models.numbers.arrays import Array, Columns, Flags
from models.records import Table, constants, record_of

MINUTE, N = 60_000, 8
FLEET = Outliers(FleetConfig(), DetectorConfig())
ROWS = np.arange(N)


def values(windows: int, seed: int = 0, noise: float = 0.05) -> Array:
    """Members that follow one load, of which the first is always twice the others, shape (windows, N)."""
    rng = np.random.default_rng(seed)
    load = 100 * np.exp(0.5 * np.sin(2 * np.pi * np.arange(windows) / 1440))
    return load[:, None] * np.exp(rng.normal(0, noise, (windows, N))) * np.array([2.0] + [1.0] * (N - 1))


def run(given: Array, state: Columns | None = None, taught: Flags | None = None) -> list[tuple[int, int, str]]:
    """(window, member, outcome) of what is said; NaN: the member has not sent that window."""
    state = FLEET.new_state(given.shape[1]) if state is None else state
    said = []
    for window, row in enumerate(given):
        said += [(window, int(at), Outcome(int(what)).name) for at, what in places(step(state, window, row, taught))]
    return said


def step(state: Columns, window: int, row: Array, taught: Flags | None = None) -> Table:
    there = np.flatnonzero(np.isfinite(row))
    start = np.full(len(there), window * MINUTE)
    may = np.ones(len(there), np.bool_) if taught is None else taught[there]
    clock = np.full(len(there), float(MINUTE) if window > 360 else 0.0)
    events = FLEET.step(state, Members(there, 0 * there, start, start + MINUTE, row[there], clock, may))
    events["place"] = there[events["place"]]
    return events


def places(events: Table) -> list[tuple[int, int]]:
    return list(zip(events["place"].tolist(), events["outcome"].tolist(), strict=True))


def test_what_all_do_together_and_what_one_always_does_are_no_news() -> None:
    given = values(3000)
    given[1500:] *= 3.0
    assert run(given) == []


@pytest.mark.parametrize("factor", [0.3, 1.5, 3.0])
def test_one_that_leaves_its_peers_is_an_outlier_and_one_again_like_them_is_back(factor: float) -> None:
    given = values(1500)
    given[1000:1100, 3] *= factor
    said = run(given)
    assert [(member, what) for _, member, what in said] == [(3, "BEGINS"), (3, "BACK")]
    assert 1000 <= said[0][0] < 1010
    assert 1100 <= said[1][0] < 1130


def test_one_that_is_always_twice_the_others_is_an_outlier_when_it_becomes_equal_to_them() -> None:
    given = values(1200)
    given[1000:, 0] /= 2.0
    assert [said[1:] for said in run(given)] == [(0, "BEGINS")]


def test_what_lasts_a_day_becomes_its_normal_and_the_old_one_is_news_then() -> None:
    given = values(4000)
    given[1000:3000, 5] *= 2.0
    said = run(given)
    assert [what for _, _, what in said] == ["BEGINS", "ACCEPTED", "BEGINS"]
    assert 2439 <= said[1][0] <= 2449
    assert 3000 <= said[2][0] < 3010


def test_what_grows_to_twice_is_said_again() -> None:
    given = values(1400)
    given[1000:1200, 2] *= 2.0
    given[1200:, 2] *= 8.0
    assert [what for _, _, what in run(given)][:2] == ["BEGINS", "GROWS"]


def test_a_slow_degradation_is_found_before_it_is_twice_the_others() -> None:
    given = values(2000)
    given[1000:1400, 4] *= 1 + np.arange(400) / 400
    given[1400:, 4] *= 2.0
    said = run(given)
    assert said[0][1:] == (4, "BEGINS")
    assert said[0][0] < 1300


def test_a_new_member_that_is_unlike_the_others_from_its_start_is_asked_once() -> None:
    given = values(1000)
    given[:, 0] /= 2.0
    given[:600, 6:] = np.nan
    given[:, 7] *= 4.0
    said = run(given)
    assert said == [(600 + FleetConfig().known - 1, 7, "BEGINS")]


def test_in_a_role_of_which_many_change_none_is_an_outlier() -> None:
    given = values(1500)
    given[1000:, :4] *= 2.0
    assert run(given) == []


def test_with_less_than_four_peers_nothing_is_said() -> None:
    given = values(1500)
    given[:, 4:] = np.nan
    given[1000:, 1] *= 10.0
    assert run(given) == []


@pytest.mark.parametrize("left", [1, 4], ids=["alone", "with three others"])
def test_an_outlier_whose_peers_leave_ends_after_a_day_and_may_begin_again_when_they_are_back(left: int) -> None:
    given = values(4000)
    given[1000:, 1] *= 3.0
    given[1050:3000, [0, *range(2, N)][left - 1 :]] = np.nan
    said = run(given)
    assert [what for _, _, what in said] == ["BEGINS", "ALONE", "BEGINS"]
    assert {member for _, member, _ in said} == {1}
    assert said[1][0] == 1049 + 1440, "a day after it was last compared"
    assert 3000 <= said[2][0] < 3010


@pytest.mark.parametrize("every", [1, 5], ids=["away for ten windows", "there in each fifth window"])
def test_an_outlier_whose_peers_are_away_for_less_than_a_day_becomes_normal_as_any_other(every: int) -> None:
    given = values(4000)
    given[1000:, 1] *= 3.0
    away = np.arange(4000)
    gone = (away >= 2435) & (away < 2445) if every == 1 else (away > 1010) & (away % every != 0)
    given[np.ix_(gone, [0, *range(3, N)])] = np.nan
    said = run(given)
    assert [(member, what) for _, member, what in said] == [(1, "BEGINS"), (1, "ACCEPTED")]
    assert 2439 <= said[1][0] <= 2452


def test_what_may_not_be_learned_from_ends_no_outlier_without_peers() -> None:
    given, state = values(3000), FLEET.new_state(N)
    given[1000:, 1] *= 3.0
    given[1050:, [0, *range(2, N)]] = np.nan
    assert [what for _, _, what in run(given[:1050], state)] == ["BEGINS"]
    for window in range(1050, 3000):
        assert not len(step(state, window, given[window], np.zeros(N, np.bool_)))


def test_what_may_not_be_learned_from_is_not_judged_and_leaves_nothing() -> None:
    given, may = values(1500), np.ones(N, np.bool_)
    may[3] = False
    given[1000:, 3] *= 5.0
    state = FLEET.new_state(N)
    assert run(given, state, may) == []
    assert state["fleet.count"][3] == 0


def test_the_order_of_members_in_a_cell_makes_no_difference() -> None:
    given = values(1500)
    given[1000:, 3] *= 2.0
    order = np.array([5, 3, 0, 7, 1, 2, 6, 4])
    other = [(window, int(order[member]), what) for window, member, what in run(given[:, order])]
    assert other == run(given)


def test_windows_in_one_call_and_one_by_one_say_the_same() -> None:
    given = values(1500)
    given[1000:1200, 3] *= 2.0
    one_by_one, at_once = FLEET.new_state(N), FLEET.new_state(N)
    said = [event for window, row in enumerate(given) for event in step(one_by_one, window, row).tolist()]
    start = np.repeat(np.arange(len(given)) * MINUTE, N)
    clock = np.where(start > 360 * MINUTE, float(MINUTE), 0.0)
    cell = start // MINUTE
    members = Members(np.tile(ROWS, len(given)), cell, start, start + MINUTE, given.ravel(), clock, start >= 0)
    events = FLEET.step(at_once, members)
    assert (events["place"] % N).tolist() == [event[0] for event in said]
    assert [event[1:] for event in events.tolist()] == [event[1:] for event in said]
    for name, column in at_once.items():
        np.testing.assert_array_equal(column, one_by_one[name], err_msg=name)


@pytest.mark.parametrize("shape", ["normal", "heavy", "counts", "clingy"])
def test_false_alarms_are_few_in_roles_of_different_noise(shape: str) -> None:
    """A twentieth of the false alarms of a month: 0.05 per series and month. Here twenty roles for three days."""
    rng, roles, windows = np.random.default_rng(3), 20, 4320
    n = roles * N
    state, rows, cling, begun = FLEET.new_state(n), np.arange(n), np.zeros(n), 0
    base = np.exp(rng.normal(0, 0.2, n))
    for window in range(windows):
        noise = rng.standard_t(3, n) if shape == "heavy" else rng.normal(0, 1, n)
        cling = 0.95 * cling + np.sqrt(1 - 0.95**2) * noise
        load = np.sin(2 * np.pi * window / 1440)
        row = 100 * base * np.exp(0.4 * load + 0.1 * (cling if shape == "clingy" else noise))
        if shape == "counts":
            row = rng.poisson(0.5 * np.exp(load), n).astype(float)
        start, clock = np.full(n, window * MINUTE), np.full(n, float(MINUTE) if window > 360 else 0.0)
        events = FLEET.step(state, Members(rows, rows // N, start, start + MINUTE, row, clock, rows >= 0))
        begun += int((events["outcome"] == Outcome.BEGINS).sum())
    assert begun / (n * windows / 43_200) <= 0.2  # 3 of 16 series months


@pytest.mark.parametrize("others", [4, 9, 40])
@pytest.mark.parametrize("mean", [0.5, 1.0, 3.0])
def test_the_chance_that_a_new_member_is_unlike_the_others_is_that_of_a_student_t(others: int, mean: float) -> None:
    config = constants(fleet=FleetConfig()).fleet
    own = record_of({"mean": np.array([mean]), "variance": np.zeros(1), "count": np.array([30.0])})
    pool = _Pool(float(others), 0.0, 0.0, others * 0.04, 0.0, 0.0, 0.0, 0.0)
    expected = -np.log(2 * t.sf(mean / np.sqrt(0.04 + FleetConfig().apart ** 2), others))
    assert _from_start(pool, config, own) == pytest.approx(expected, rel=0.06, abs=0.2)


@pytest.mark.parametrize("wrong", [18446744073709551615.0, 1e300, -1e300])
@pytest.mark.parametrize("window", [0, 600])
@pytest.mark.parametrize("members", [[6], ROWS])
def test_one_wrong_value_does_not_blind_what_machines_are_compared_by(
    wrong: float, window: int, members: list[int]
) -> None:
    given = values(1500)
    given[1000:1100, 3] *= 3.0
    wanted = [said for said in run(given) if said[1] == 3]
    given[window, members] = wrong
    state = FLEET.new_state(N)
    said = [(at, *rest) for at, *rest in run(given, state) if rest[0] == 3]
    assert all(np.isfinite(column).all() for column in state.values() if column.dtype.kind == "f")
    if window or len(members) < N:
        assert [each[1:] for each in said] == [each[1:] for each in wanted] == [(3, "BEGINS"), (3, "BACK")]
        assert abs(said[0][0] - wanted[0][0]) <= 5


@pytest.mark.parametrize("age", [40, 80, 200])
@pytest.mark.parametrize("hours", [0.5, 2.0, 6.0])
def test_a_young_member_that_degrades_is_told_about_as_early_as_an_old_one(age: int, hours: float) -> None:
    """It becomes twice its peers in so many hours; it may take 1.5 times as long, and ten windows more."""
    first, begin = 1000, 1000 + age
    delays = {}
    for seed in range(6):
        for member in (2, 3):  # 2 is old, 3 joins at the window 1000
            given = values(begin + int(hours * 60) + 400, seed)
            given[:first, 3] = np.nan
            ramp = np.clip((np.arange(len(given)) - begin) / (60 * hours), 0, 1)
            given[:, member] *= 2.0**ramp
            told = [window for window, at, what in run(given) if at == member and what == "BEGINS" and window >= begin]
            delays.setdefault(member, []).append(told[0] - begin if told else 10_000)
    old, young = (float(np.median(delays[member])) for member in (2, 3))
    assert young <= 1.5 * old + 10
