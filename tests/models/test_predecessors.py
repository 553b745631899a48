"""A new replica is judged by what its workload's replicas were from its first value, and by itself soon.

The right band is that of a series of the same process which has run all the time and is no member of the workload; for
normal values, also that of the process itself: 99.9 % of a normal lie within 3.29 standard deviations.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from models.config import DetectorConfig
from models.detector import Detector
from models.families.choice import NONE, MetricKind
from models.families.suited import About
from models.numbers.arrays import Array, Columns, Ints
from models.verdicts import Kind, SeriesVerdicts
from tests.models.contracts import same_state

MINUTE, DAY = 60_000, 86_400_000
WORKLOADS, REPLICAS = 8, 3
MONDAY = 1_791_763_200_000  # 2026-10-12 00:00 UTC
Process = Callable[[np.random.Generator, Ints, Array], Array]
"""Values of workloads (by number, shape (n,)) at a time of the day from 0 to 1, shape (n,)."""


def _level(workload: Ints) -> Array:
    return 10.0 * 3.0 ** (workload % 5)


def gauge(rng: np.random.Generator, workload: Ints, day: Array) -> Array:
    return np.asarray(rng.normal(_level(workload), 0.05 * _level(workload)))


def latency(rng: np.random.Generator, workload: Ints, day: Array) -> Array:
    return np.asarray(rng.lognormal(np.log(_level(workload)), 0.5))


def events(rng: np.random.Generator, workload: Ints, day: Array) -> Array:
    return rng.poisson(_level(workload)).astype(np.float64)


def rate_by_hour(rng: np.random.Generator, workload: Ints, day: Array) -> Array:
    usual = _level(workload) * (1 + 0.8 * np.sin(2 * np.pi * day))
    return np.asarray(rng.normal(usual, 0.03 * _level(workload)))


def share(rng: np.random.Generator, workload: Ints, day: Array) -> Array:
    return np.asarray(rng.binomial(1000, 0.02 + 0.01 * (workload % 5)) / 1000)


PROCESSES = {
    gauge: MetricKind.GAUGE,
    latency: MetricKind.LATENCY,
    events: MetricKind.COUNT,
    rate_by_hour: MetricKind.COUNTER,
    share: MetricKind.RATIO,
}


class _Site:
    def __init__(self, process: Process, series: int) -> None:
        self.detector, self.process, self.rng = Detector(DetectorConfig()), process, np.random.default_rng(4)
        self.state: Columns = self.detector.new_state(series)
        self.kind = PROCESSES[process].value

    def run(self, rows: Ints, workload: Ints, begin: int, windows: int) -> SeriesVerdicts:
        """Windows of a minute of some series; the verdicts in order of window and series."""
        time = np.repeat(begin + MINUTE * np.arange(windows), len(rows))
        every, n = np.tile(workload, windows), len(rows) * windows
        value = self.process(self.rng, every, time % DAY / DAY)
        about = About(np.full(n, self.kind), np.full(n, NONE), np.ones(n))
        return self.detector.steps(self.state, np.tile(rows, windows), time, value, None, about)[0]

    def inherit(self, rows: Ints, members: Ints, of: Ints, to: Ints | None = None) -> None:
        sums = self.detector.predecessors.sums(self.state, members, of, int(of[-1]) + 1)
        self.detector.predecessors.start(self.state, rows, sums, np.arange(len(rows)) if to is None else to)


def _widths(verdicts: SeriesVerdicts, last: int) -> Array:
    return (verdicts.upper - verdicts.lower)[-last:]


@pytest.mark.parametrize("process", PROCESSES, ids=lambda process: process.__name__)
def test_at_window_3_the_band_of_a_new_replica_is_at_most_1_3_times_that_of_one_that_runs_for_long(
    process: Process,
) -> None:
    number, replicas = np.arange(WORKLOADS), np.repeat(np.arange(WORKLOADS), REPLICAS)
    old = np.arange(WORKLOADS * REPLICAS)
    long, new = old[-1] + 1 + number, old[-1] + 1 + WORKLOADS + number
    site = _Site(process, int(new[-1]) + 1)
    site.run(np.append(old, long), np.append(replicas, number), MONDAY, 3 * 1440 + 600)
    site.inherit(new, old, replicas)
    verdicts = site.run(np.append(new, long), np.append(number, number), MONDAY + 3 * DAY + 600 * MINUTE, 3)
    found, right = np.split(_widths(verdicts, 2 * WORKLOADS), 2)
    ratio = found / right
    assert ((ratio > 0.75) & (ratio <= 1.3)).all(), ratio
    if process is gauge:
        assert (found <= 1.3 * 2 * 3.29 * 0.05 * _level(number)).all()


@pytest.mark.parametrize("process", [gauge, latency, rate_by_hour], ids=lambda process: process.__name__)
def test_the_experts_of_the_first_value_are_believed_in_full(process: Process) -> None:
    """Geometric means of weights add up to less than 1: what is typical would lie too near 0."""
    number, replicas = np.arange(WORKLOADS), np.repeat(np.arange(WORKLOADS), REPLICAS)
    old, new = np.arange(WORKLOADS * REPLICAS), WORKLOADS * REPLICAS + number
    site = _Site(process, int(new[-1]) + 1)
    site.run(old, replicas, MONDAY, 600)
    site.inherit(new, old, replicas)
    verdicts = site.run(new, number, MONDAY + 600 * MINUTE, 1)
    np.testing.assert_allclose(sum(verdicts.experts.values()), 1.0, rtol=1e-6)


@pytest.mark.parametrize("process", [gauge, rate_by_hour, events], ids=lambda process: process.__name__)
def test_of_a_workload_with_one_replica_that_is_replaced_each_day_the_band_is_right(process: Process) -> None:
    number, days = np.arange(WORKLOADS), 5
    long = days * WORKLOADS + number
    site = _Site(process, (days + 1) * WORKLOADS)
    for day in range(days):
        new = day * WORKLOADS + number
        if day:
            members = np.arange(day * WORKLOADS).reshape(day, WORKLOADS).T.ravel()
            site.inherit(new, members, np.repeat(number, day))
        rows = np.append(new, long)
        begin = MONDAY + day * DAY + 540 * MINUTE
        first = site.run(rows, np.append(number, number), begin, 3)
        site.run(rows, np.append(number, number), begin + 3 * MINUTE, 1437)
    found, right = np.split(_widths(first, 2 * WORKLOADS), 2)
    ratio = found / right
    assert ((ratio > 0.75) & (ratio <= 1.3)).all(), ratio


def test_a_new_replica_that_is_otherwise_than_its_predecessors_is_judged_by_itself_after_an_hour() -> None:
    """What it starts from fades: its band is then at most 1.3 times that of its own process, round its own level."""
    number, replicas = np.arange(WORKLOADS), np.repeat(np.arange(WORKLOADS), REPLICAS)
    old, new = np.arange(WORKLOADS * REPLICAS), WORKLOADS * REPLICAS + number
    site = _Site(gauge, int(new[-1]) + 1)
    site.run(old, replicas, MONDAY, 1440)
    site.inherit(new, old, replicas)
    verdicts = site.run(new, number + 1, MONDAY + DAY, 240)
    typical, width = verdicts.typical[-WORKLOADS:], _widths(verdicts, WORKLOADS)
    np.testing.assert_allclose(typical, _level(number + 1), rtol=0.1)
    assert (width <= 2 * 2 * 3.29 * 0.05 * _level(number + 1)).all(), width / (2 * 3.29 * 0.05 * _level(number + 1))


def _generations(process: Process, factor: Callable[[int, Array], Array]) -> list[SeriesVerdicts]:
    """Four generations of six replicas, each for half a day; the verdicts of each by their age in windows."""
    site, said = _Site(process, 24), []
    for generation in range(4):
        rows, members = 6 * generation + np.arange(6), np.arange(6 * generation)
        if generation:
            site.inherit(rows, members, np.zeros(len(members), np.int64), to=np.zeros(6, np.int64))
        factors = factor(generation, np.repeat(np.arange(720), 6))
        site.process = lambda rng, of, day, factors=factors: process(rng, of, day) * factors  # type: ignore[misc]
        said.append(site.run(rows, np.zeros(6, np.int64), MONDAY + generation * DAY // 2, 720))
    return said


def _news(verdicts: SeriesVerdicts) -> Array:
    """Whether each is news, by window and replica."""
    return _news_of(verdicts).reshape(720, 6)


def _news_of(verdicts: SeriesVerdicts) -> Array:
    return np.asarray(np.isin(verdicts.kind, [Kind.ANOMALY.code, Kind.STATE_CHANGE.code]))


@pytest.mark.parametrize("process", [gauge, events, share], ids=lambda process: process.__name__)
def test_a_release_that_is_wrong_from_its_first_value_is_news_of_most_replicas_within_five(process: Process) -> None:
    """Guards `models.series.birth`: else each replica is learned anew, and three times as much is its normal."""
    said = _generations(process, lambda generation, age: np.where(generation == 3, 3.0, 1.0) + 0.0 * age)
    assert _news(said[3])[:5].any(axis=0).mean() > 0.5


def _evidence(verdicts: SeriesVerdicts, last: int) -> Array:
    """Of the last verdicts, in units of what scores 50."""
    score = verdicts.record_score[-last:]
    return np.asarray(score / (100.0 - score))


@pytest.mark.parametrize("process", [gauge, events, share], ids=lambda process: process.__name__)
def test_the_first_value_of_a_wrong_release_weighs_nearly_as_much_as_the_same_jump_of_a_series_known_for_long(
    process: Process,
) -> None:
    """Guards that a band counts by all values that it rests on: where it counts by 8, a jump weighs half as much."""
    old, new = np.arange(6), 6 + np.arange(6)
    site = _Site(process, 24)
    for begin, rows in ((0, old), (1, new), (2, 12 + old)):
        if begin:
            site.inherit(rows, np.arange(6 * begin), np.zeros(6 * begin, np.int64), to=np.zeros(6, np.int64))
        site.run(rows, np.zeros(6, np.int64), MONDAY + begin * DAY, 1440)
    site.inherit(18 + old, np.arange(18), np.zeros(18, np.int64), to=np.zeros(6, np.int64))
    site.process = lambda rng, of, day: 3.0 * process(rng, of, day)
    rows = np.append(18 + old, 12 + old)
    found, right = np.split(_evidence(site.run(rows, np.zeros(12, np.int64), MONDAY + 3 * DAY, 1), 12), 2)
    assert np.median(found) >= 0.7 * np.median(right), (found, right)


@pytest.mark.parametrize("process", [gauge, latency, events, share], ids=lambda process: process.__name__)
def test_a_replica_that_begins_as_those_before_it_opens_no_incident(process: Process) -> None:
    """Guards that its reference, too, begins where they are: an incident from 0 to the usual level would be open."""
    site = _Site(process, 24)
    for generation in range(4):
        rows, members = 6 * generation + np.arange(6), np.arange(6 * generation)
        begin = MONDAY + generation * DAY // 2
        if generation:
            site.inherit(rows, members, np.zeros(len(members), np.int64), to=np.zeros(6, np.int64))
        open_at = []
        for window in range(30):
            site.run(rows, np.zeros(6, np.int64), begin + window * MINUTE, 1)
            open_at.append(site.detector.onset(site.state, rows) >= 0)
        site.run(rows, np.zeros(6, np.int64), begin + 30 * MINUTE, 690)
        assert np.mean(open_at) < 0.1, generation


def test_news_of_a_replica_says_how_much_its_predecessors_are_worth_beside_its_own_values() -> None:
    said = _generations(gauge, lambda generation, age: np.where(generation == 3, 3.0, 1.0) + 0.0 * age)[3]
    own, inherited = (said.context[name].reshape(720, 6)[:5] for name in ("values", "inherited"))
    told = _news(said)[:5]
    assert told.any()
    np.testing.assert_array_equal(own[told], np.repeat(np.arange(5.0), 6).reshape(5, 6)[told])
    assert (inherited[told] >= 60).all()  # a release of six is the fourth of six: more than a single hour's
    assert not np.isfinite(_generations(gauge, lambda _, age: np.ones(len(age)))[0].context["inherited"]).any()


def test_what_was_summed_up_by_an_earlier_version_counts_as_the_values_that_are_learned_from() -> None:
    """Its sums do not say what predecessors are worth."""
    site, group = _Site(gauge, 24), np.zeros(6, np.int64)
    for generation in range(3):
        rows, members = 6 * generation + np.arange(6), np.arange(6 * generation)
        if generation:
            site.inherit(rows, members, np.zeros(len(members), np.int64), to=group)
        site.run(rows, group, MONDAY + generation * DAY // 2, 720)
    sums = site.detector.predecessors.sums(site.state, np.arange(18), np.zeros(18, np.int64), 1)
    assert sums.pop("worth")[0] > 60
    site.detector.predecessors.start(site.state, 18 + np.arange(6), sums, group)
    learning = site.detector.config.learning
    assert (site.state["birth.worth"][18:] == learning).all()
    site.process = lambda rng, of, day: 3.0 * gauge(rng, of, day)
    assert _news_of(site.run(18 + np.arange(6), group, MONDAY + 2 * DAY, 5)).any()


@pytest.mark.parametrize("process", [gauge, latency, events, share], ids=lambda process: process.__name__)
def test_a_replica_that_begins_as_those_before_it_is_no_news(process: Process) -> None:
    """Guards that it goes on where they are: one value in a hundred would be many false alarms a month."""
    for verdicts in _generations(process, lambda _, age: np.ones(len(age)))[1:]:
        assert _news(verdicts)[:60].mean() < 0.005


@pytest.mark.parametrize("lacks", [0.1, 0.3, 0.6])
def test_replicas_that_warm_up_are_learned_as_any_new_series(lacks: float) -> None:
    for verdicts in _generations(gauge, lambda _, age: 1 - lacks * np.exp(-age / 60.0))[1:]:
        assert not _news(verdicts)[:8].any()


def _lives(
    process: Process, lives: list[tuple[int, int]], factor: Callable[[int, Array, Array], Array]
) -> list[SeriesVerdicts]:
    """Generations of six replicas, each with its begin and its length in windows; the verdicts of each by their age."""
    site, said = _Site(process, 6 * len(lives)), []
    for generation, (begin, windows) in enumerate(lives):
        rows, members = 6 * generation + np.arange(6), np.arange(6 * generation)
        if generation:
            site.inherit(rows, members, np.zeros(len(members), np.int64), to=np.zeros(6, np.int64))
        factors = factor(generation, np.tile(np.arange(6), windows), np.repeat(np.arange(windows), 6))
        site.process = lambda rng, of, day, factors=factors: process(rng, of, day) * factors  # type: ignore[misc]
        said.append(site.run(rows, np.zeros(6, np.int64), MONDAY + begin * MINUTE, windows))
    return said


@pytest.mark.parametrize("process", [gauge, events, share], ids=lambda process: process.__name__)
def test_what_one_replica_did_for_half_an_hour_hides_no_release_that_does_less_from_its_start(process: Process) -> None:
    """One of six was four times as slow the day before: a release that is three times as slow is news all the same."""
    lives = [(0, 720), (720, 720), (1440, 720), (2160, 5)]

    def factor(generation: int, replica: Array, age: Array) -> Array:
        was_slow = (generation == 1) & (replica == 2) & (age >= 300) & (age < 330)
        return np.where(was_slow, 4.0, 3.0 if generation == 3 else 1.0)

    assert _news_of(_lives(process, lives, factor)[3]).reshape(5, 6).any(axis=0).mean() > 0.5


@pytest.mark.parametrize("process", [gauge, share], ids=lambda process: process.__name__)
def test_after_a_release_that_was_taken_back_the_next_wrong_one_is_news_again(process: Process) -> None:
    """Replicas that began wrong, and those that replace them, do not say that replicas begin otherwise each time."""
    lives, wrong = [(0, 720), (720, 720), (1440, 480), (1920, 30), (1950, 240), (2190, 5)], (3, 5)
    said = _lives(process, lives, lambda generation, _, age: np.where(generation in wrong, 3.0, 1.0) + 0.0 * age)
    for generation in wrong:
        assert _news_of(said[generation]).reshape(-1, 6)[:5].any(axis=0).mean() > 0.5, generation
    assert not _news_of(said[4]).any()


@pytest.mark.parametrize("process", [gauge, events], ids=lambda process: process.__name__)
@pytest.mark.parametrize("last", [0.1, 0.5])
def test_replicas_that_end_with_a_window_of_less_say_what_their_workload_is(process: Process, last: float) -> None:
    """Requests stop while a replica is drained: this is no incident, and a wrong release after it is news."""
    lives = [(0, 720), (720, 720), (1440, 720), (2160, 5)]

    def factor(generation: int, replica: Array, age: Array) -> Array:
        drained = (generation < 3) & (replica > 0) & (age == 719)
        return np.where(drained, last, 3.0 if generation == 3 else 1.0)

    assert _news_of(_lives(process, lives, factor)[3]).reshape(5, 6).any(axis=0).mean() > 0.5


def test_a_workload_of_which_all_replicas_are_in_an_incident_is_known_all_the_same() -> None:
    """Else a replica that joins six which are slow would begin as one of which nothing is known."""
    site, group = _Site(gauge, 6), np.zeros(6, np.int64)
    site.run(np.arange(6), group, MONDAY, 720)
    site.process = lambda rng, of, day: 3.0 * gauge(rng, of, day)
    site.run(np.arange(6), group, MONDAY + 720 * MINUTE, 20)
    assert (site.detector.onset(site.state, np.arange(6)) >= 0).all()
    assert site.detector.predecessors.sums(site.state, np.arange(6), group, 1)["variance"][0] > 0


def test_what_a_workload_did_before_its_last_version_counts_little() -> None:
    """One replica a day: four of one level, and one of the next level, from which the sixth starts."""
    site = _Site(gauge, 6)
    for day in range(5):
        site.run(np.array([day]), np.array([1 if day == 4 else 0]), MONDAY + day * DAY, 1440)
    site.inherit(np.array([5]), np.arange(5), np.zeros(5, np.int64))
    verdicts = site.run(np.array([5]), np.array([1]), MONDAY + 5 * DAY, 1)
    assert abs(verdicts.typical[0] / 30.0 - 1) < 0.1


def test_replicas_that_never_said_anything_leave_nothing() -> None:
    site = _Site(gauge, 3)
    fresh = site.detector.new_state(3)
    site.inherit(np.array([2]), np.array([0, 1]), np.zeros(2, np.int64))
    same_state(site.state, fresh)


def test_what_is_summed_of_a_workload_does_not_depend_on_the_other_workloads() -> None:
    site = _Site(rate_by_hour, 9)
    rows = np.arange(9)
    site.run(rows, rows // 3, MONDAY, 500)
    sums = site.detector.predecessors.sums(site.state, rows, rows // 3, 3)
    for one in range(3):
        alone = site.detector.predecessors.sums(site.state, 3 * one + np.arange(3), np.zeros(3, np.int64), 1)
        for name, column in alone.items():
            np.testing.assert_array_equal(column[0], sums[name][one], err_msg=name)
