"""What each operator does, in a few records that can be checked by eye."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from engine.aggregates import Count, Last, Mean
from engine.operators.broadcast import Broadcast
from engine.operators.correlation import Correlation
from engine.operators.deduplicate import Deduplicate
from engine.operators.interval_join import IntervalJoin
from engine.operators.pattern import Event, Pattern
from engine.operators.process import Process
from engine.operators.sequence_windows import CountWindows, DeltaWindows
from engine.operators.turn import Logic, Turn
from engine.operators.window_join import WindowJoin
from engine.reference import Arrival, Watermark
from engine.spec.errors import NewnormalError
from engine.spec.record import Record
from engine.stream import Stream
from engine.windows import Sliding, Tumbling
from tests.engine.operators.conftest import ARRIVED, T0, Batch, Missed, Point, ends, job_of, point, points, rule, rules

Run = Callable[..., list[dict[str, Any]]]


def taken(topic: str, *records: dict[str, Any], partition: int = 0) -> Batch:
    return [Arrival(topic, partition, ARRIVED, record) for record in records]


def of(rows: list[dict[str, Any]], *columns: str) -> list[tuple[Any, ...]]:
    """Some columns, in order of time; times from T0 on."""
    shown = ("time", "window_start", "window_end", "left_time", "right_time", "a_time", "b_time")
    rows = sorted(rows, key=lambda r: (r["time"] or r["window_end"], r["key"]))
    return [tuple(r[c] - T0 if c in shown and r[c] is not None else r[c] for c in columns) for r in rows]


@pytest.fixture
def run(driven: Callable[..., Any]) -> Run:
    def rows(stream: Stream, *batches: Batch, shards: int = 2, late: type[Record] = Point) -> list[dict[str, Any]]:
        job = job_of(stream, late)
        return list(driven(job, shards).run([*batches, ends(job.topics)]).rows)

    return rows


def stream(**more: Any) -> Stream:
    return Stream.read(points("l", **more)).key_by("key")


def test_of_duplicates_the_first_by_event_time_passes_and_after_a_while_one_passes_again(run: Run) -> None:
    batch = taken("l", point(4000, word="x"), point(1000, word="x"), point(6000, word="x"), point(2000, word="y"))
    rows = run(stream().process(Deduplicate(by=("word",), within="5s")), batch)
    assert of(rows, "time", "word") == [(1000, "x"), (2000, "y"), (6000, "x")]


def test_a_count_window_closes_when_it_is_full_or_when_its_time_is_up(run: Run) -> None:
    batch = taken("l", *(point(t, value=float(t)) for t in (0, 1000, 2000, 3000)))
    windows = stream().window(CountWindows(3, timeout="10s")).aggregate(n=Count(), last=Last("value"))
    assert of(run(windows, batch), "window_start", "window_end", "n", "last") == [
        (0, 2001, 3, 2000.0),
        (3000, 13_000, 1, 3000.0),
    ]


def test_a_delta_window_closes_when_a_value_has_moved_by_more_than_the_threshold(run: Run) -> None:
    prices = [10.0, 10.5, 11.0, 11.1, 11.2, 9.9]
    batch = taken("l", *(point(1000 * i, value=price) for i, price in enumerate(prices)))
    windows = stream().window(DeltaWindows("value", 1.0)).aggregate(n=Count(), mean=Mean("value"))
    rows = of(run(windows, batch), "window_start", "window_end", "n")
    assert rows == [(0, 3000, 3), (3000, 5000, 2)], "the last one is open still"


def test_an_interval_join_pairs_what_lies_within_its_bounds(run: Run) -> None:
    other = Stream.read(points("r"))
    joined = stream().join(other, IntervalJoin("-1s", "2s", how="left"))
    left = taken("l", point(5000, value=1.0), point(20_000, value=2.0))
    right = taken("r", *(point(t, value=t / 1000) for t in (3999, 4000, 7000, 7001)))
    assert of(run(joined, right, left), "time", "left_time", "right_time", "value", "value_right") == [
        (5000, 5000, 4000, 1.0, 4.0),
        (7000, 5000, 7000, 1.0, 7.0),
        (22_000, 20_000, None, 2.0, None),
    ]


def test_a_window_join_pairs_what_lies_in_one_window(run: Run) -> None:
    joined = stream().join(Stream.read(points("r")), WindowJoin(Tumbling("5s")))
    left, right = taken("l", point(1000), point(6000)), taken("r", point(4999), point(9000), point(10_000))
    assert of(run(joined, left, right), "window_end", "left_time", "right_time") == [
        (5000, 1000, 4999),
        (10_000, 6000, 9000),
    ]


def test_two_streams_that_move_together_correlate(run: Run) -> None:
    rolling = Correlation("value", "value", Sliding("10s", every="1s"), least=10)
    joined = stream().join(Stream.read(points("r")), rolling)
    wave = [float(np.sin(i)) for i in range(10)]
    left = taken("l", *(point(1000 * i, value=v) for i, v in enumerate(wave)))
    right = taken("r", *(point(1000 * i + 300, value=-2 * v) for i, v in enumerate(wave)))
    (row,) = run(joined, left, right)
    assert (row["window_end"] - T0, row["pairs"]) == (10_000, 10)
    assert row["correlation"] == pytest.approx(-1.0)


def test_a_rule_takes_effect_at_its_event_time_on_all_keys_in_all_shards(run: Run) -> None:
    over = Broadcast(identity=("rule",), on=("word",), where='active AND value > "limit"')
    joined = stream().join(Stream.read(rules()), over)
    records = taken(
        "l",
        *(point(t, key, value=5.0) for t in (1000, 2000, 3000, 4000) for key in "abcd"),
        point(2500, "a", value=1.0),
        point(2500, "b", value=9.0, word="y"),
    )
    slow = taken("rules", rule(2000, "p", "x", limit=4.0), rule(4000, "p", "x", limit=4.0, active=False))
    rows = run(joined, records, slow, shards=3, late=Missed)
    assert of(rows, "time", "key") == [(t, key) for t in (2000, 3000) for key in "abcd"]


def test_a_record_that_comes_too_late_is_reported_and_a_rule_never_is(driven: Callable[..., Any]) -> None:
    job = job_of(stream().join(Stream.read(rules()), Broadcast(identity=("rule",))), late=Missed)
    told: Batch = [Watermark(topic, 0, ARRIVED, T0 + 5000) for topic in job.topics]
    late = taken("rules", rule(1000, "p", "x", 4.0)) + taken("l", point(2000))
    assert sorted(row["time"] - T0 for row in driven(job, 3).run([told, late]).late) == [2000]


def test_a_pattern_finds_a_then_b_within_a_time(run: Run) -> None:
    card = Pattern((Event("a", "word = 'x'"), Event("b", "word = 'y' AND value > a_value")), "5s", ("value",))
    batch = taken(
        "l",
        point(1000, value=1.0),
        point(2000, value=0.5, word="y"),
        point(3000, value=2.0, word="y"),
        point(10_000, value=1.0),
        point(16_000, value=2.0, word="y"),
        point(3000, "b", value=2.0, word="y"),
    )
    assert of(run(stream().process(card), batch), "key", "time", "a_time", "b_value") == [("a", 3000, 1000, 2.0)]


def test_a_pattern_finds_an_absence(run: Run) -> None:
    unanswered = Pattern((Event("a", "word = 'x'"), Event("n", "word = 'y'", "absent")), "5s")
    batch = taken("l", point(1000), point(3000, word="y"), point(8000), point(13_001, word="y"))
    assert of(run(stream().process(unanswered), batch), "time", "a_time") == [(13_000, 8000)]


class Silence(Logic):
    """Tells when a key has said nothing for five seconds."""

    def on_records(self, turn: Turn) -> None:
        turn.timer[:] = turn.time + 5000

    def on_timers(self, turn: Turn) -> None:
        turn.emit({"word": np.full(len(turn), "silent", object)})


def test_a_timer_fires_at_its_event_time_ahead_of_later_records(run: Run) -> None:
    batch = taken("l", point(0), point(4999), point(10_000), point(1000, "b"))
    assert of(run(stream().process(Process(Silence())), batch), "key", "time", "word") == [
        ("b", 6000, "silent"),
        ("a", 9999, "silent"),
        ("a", 15_000, "silent"),
    ]


class Hurried(Logic):
    """Sets a timer at an instant that has passed."""

    def on_records(self, turn: Turn) -> None:
        turn.timer[:] = turn.time - 5000

    def on_timers(self, turn: Turn) -> None:
        turn.emit({"word": np.full(len(turn), "done", object)})


def test_a_timer_in_the_past_fires_a_millisecond_after_the_record_that_set_it(run: Run) -> None:
    batch = taken("l", point(1000), point(1001), point(7000))
    assert of(run(stream().process(Process(Hurried())), batch), "time", "word") == [
        (1001, "done"),
        (1002, "done"),
        (7001, "done"),
    ]


def test_keys_that_are_idle_are_forgotten(driven: Callable[..., Any]) -> None:
    job = job_of(stream().process(Deduplicate(by=("value",), within="1s")))
    sizes = []
    for n in (1, 40):
        batches: list[Batch] = []
        for i in range(n):
            batches.append(taken("l", *(point(i * 2000 + j, value=float(100 * i + j)) for j in range(50))))
            batches.append([Watermark("l", 0, ARRIVED, T0 + i * 2000 + 1500)])
        state = driven(job).run(batches).states[0]
        sizes.append(sum(map(len, state.values.values())))
    assert sizes[1] < 1.2 * sizes[0]


def test_a_pattern_that_means_nothing_is_refused() -> None:
    with pytest.raises(NewnormalError, match="PATTERN_INVALID"):
        Pattern((Event("a", "true", "absent"),), "5s")
    with pytest.raises(NewnormalError, match="EXPRESSION_INVALID"):
        Pattern((Event("a", "value >"),), "5s")
    with pytest.raises(NewnormalError, match="INTERVAL_INVALID"):
        IntervalJoin("5s", "-5s")
