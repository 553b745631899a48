"""Each operator gives what its reference says, whatever the order, batches, partitions or shards."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.aggregates import Count, Mean
from engine.operators.broadcast import Broadcast
from engine.operators.callback import EachKey, KeyCallback, Timer
from engine.operators.correlation import Correlation
from engine.operators.deduplicate import Deduplicate
from engine.operators.interval_join import IntervalJoin
from engine.operators.pattern import Event, Pattern
from engine.operators.process import Process
from engine.operators.sequence_windows import CountWindows, DeltaWindows
from engine.operators.temporal_join import TemporalJoin
from engine.operators.turn import Logic, Turn
from engine.operators.window_join import WindowJoin
from engine.reference.interpreter import rows as input_rows
from engine.reference.of import reference as reference_of
from engine.spec.duration import END_OF_TIME, NEVER
from engine.spec.job import Job
from engine.spec.most_keys import MostKeys
from engine.spec.operator import Progress, Row
from engine.stream import Stream
from engine.testing.runners import bounded
from engine.windows import Sliding, Tumbling
from tests.engine.operators.conftest import (
    Check,
    Missed,
    any_batches,
    arrivals,
    job_of,
    points,
    rows_of,
    rules,
    shuffled_batches,
    some_examples,
)


class Totals(Logic):
    """Running count and sum of a key; a timer 3 s after its last record tells them once more, twice."""

    state = {"n": 0, "total": 0.0, "told": False, "word": ""}  # noqa: RUF012

    def on_records(self, turn: Turn) -> None:
        turn.state["n"] += 1
        turn.state["total"] += np.nan_to_num(turn["value"].astype(float))
        turn.state["word"] = turn["word"]
        turn.state["told"][:] = False
        turn.timer[:] = turn.time + 3000
        turn.emit({"n": turn.state["n"], "total": turn.state["total"]}, where=turn.state["n"] % 2 == 0)
        turn.forward(turn.state["n"] == 3)

    def on_timers(self, turn: Turn) -> None:
        turn.emit({"n": -turn.state["n"], "word": turn.state["word"]})
        turn.timer[~turn.state["told"]] = turn.time[~turn.state["told"]] + 1500
        turn.state["told"][:] = True


class Longest(KeyCallback):
    """Tells each new largest value, and after 4 s of silence how many records there were."""

    def on_record(self, record: Row, state: Row, timer: Timer) -> list[Row]:
        state["n"] = state.get("n", 0) + 1
        timer.at = timer.now + 4000
        value = record["value"]
        if value is None or np.isnan(value) or value <= state.get("most", -1e9):
            return []
        state["most"] = value
        return [{"value": value}, {"n": state["n"]}]

    def on_timer(self, state: Row, timer: Timer) -> list[Row]:
        return [{"n": -state["n"]}]


def one(operator: Callable[[Stream], Stream]) -> Callable[[str], Job]:
    return lambda bound: job_of(operator(Stream.read(points("l", bound)).key_by("key")))


def two(how: Any) -> Callable[[str], Job]:
    def job(bound: str) -> Job:
        left, right = Stream.read(points("l", bound)), Stream.read(points("r", bound))
        return job_of(left.key_by("key").join(right, how))

    return job


def ruled(how: Broadcast) -> Callable[[str], Job]:
    def job(bound: str) -> Job:
        left = Stream.read(points("l", bound)).key_by("key")
        return job_of(left.join(Stream.read(rules(bound)), how), late=Missed)

    return job


rise = Event("a", "value > 0 AND word <> 'z'")
fall = Event("b", "value < a_value")
lower = Event("c", "value < b_value")
odd = Event("n", "word = 'y'")
JOBS: dict[str, tuple[tuple[str, ...], Callable[[str], Job]]] = {
    "process": (("l",), one(lambda s: s.process(Process(Totals())))),
    "process, idle keys": (("l",), one(lambda s: s.process(Process(Totals(), idle_after="4s")))),
    "process, short life": (("l",), one(lambda s: s.process(Process(Totals(), idle_after="2s")))),
    "process, few keys": (
        ("l",),
        one(lambda s: s.process(Process(Totals(), "4s", MostKeys(("key", "word"), 2, 3, 5_000), slots=6))),
    ),
    "callback": (("l",), one(lambda s: s.process(Process(EachKey(Longest(), ("value",)), idle_after="6s")))),
    "deduplicate": (("l",), one(lambda s: s.process(Deduplicate(by=("word",), within="5s")))),
    "count windows": (("l",), one(lambda s: s.window(CountWindows(3)).aggregate(n=Count()))),
    "count windows, timeout": (("l",), one(lambda s: s.window(CountWindows(4, timeout="5s")).aggregate(n=Count()))),
    "delta windows": (("l",), one(lambda s: s.window(DeltaWindows("value", 1.5)).aggregate(n=Count()))),
    "delta windows, timeout": (
        ("l",),
        one(lambda s: s.window(DeltaWindows("value", 1.5, timeout="8s")).aggregate(n=Count())),
    ),
    "interval join": (("l", "r"), two(IntervalJoin("-2s", "1500ms"))),
    "interval join, after": (("l", "r"), two(IntervalJoin("500ms", "4s", how="left"))),
    "interval join, before": (("l", "r"), two(IntervalJoin("-4s", "-1s", how="left"))),
    "interval join, at once": (("l", "r"), two(IntervalJoin("0s", "0s", how="left"))),
    "window join": (("l", "r"), two(WindowJoin(Tumbling("5s")))),
    "window join, sliding": (("l", "r"), two(WindowJoin(Sliding("6s", every="2s", offset="700ms")))),
    "temporal join": (("l", "r"), two(TemporalJoin(deleted="value > 1"))),
    "temporal join, left": (("l", "r"), two(TemporalJoin("left", deleted="word = 'z'"))),
    "temporal join, late": (("l", "r"), two(TemporalJoin("left", "value > 1", allowed_lateness="4s"))),
    "correlation": (("l", "r"), two(Correlation("value", "value", Sliding("10s", every="2s", offset="1s"), least=2))),
    "broadcast": (("l", "rules"), ruled(Broadcast(("rule",), on=("word",), how="left"))),
    "broadcast, condition": (
        ("l", "rules"),
        ruled(Broadcast(("rule",), where='active AND word = word_right AND value > "limit"')),
    ),
    "pattern": (("l",), one(lambda s: s.process(Pattern((rise, fall), "8s", ("value",))))),
    "pattern, next": (("l",), one(lambda s: s.process(Pattern((rise, replace(fall, how="next")), "8s", ("value",))))),
    "pattern, past last": (
        ("l",),
        one(lambda s: s.process(Pattern((rise, fall, lower), "20s", ("value",), after="past_last"))),
    ),
    "pattern, absence between": (
        ("l",),
        one(lambda s: s.process(Pattern((rise, replace(odd, how="absent"), fall), "20s", ("value",)))),
    ),
    "pattern, absence at the end": (
        ("l",),
        one(lambda s: s.process(Pattern((rise, fall, replace(odd, how="absent")), "10s", ("value",)))),
    ),
    "pattern, absence at the end, past last": (
        ("l",),
        one(lambda s: s.process(Pattern((rise, fall, replace(odd, how="absent")), "10s", ("value",), "past_last"))),
    ),
    "pattern of one": (("l",), one(lambda s: s.process(Pattern((rise,), "1s", ("value",))))),
    "merge": (
        ("l", "r"),
        lambda bound: job_of(
            Stream.read(points("l", bound))
            .merge(Stream.read(points("r", bound)))
            .key_by("key")
            .process(Deduplicate(by=("word",), within="5s"))
        ),
    ),
    "chain": (
        ("l",),
        one(
            lambda s: (
                s.filter("value > 0")
                .process(Deduplicate(by=("word",), within="2s"))
                .window(CountWindows(2, timeout="9s"))
                .aggregate(n=Count(), mean=Mean("value"))
                .filter("n > 1")
            )
        ),
    ),
    "chain, then aligned windows": (
        ("l",),
        one(lambda s: s.process(Deduplicate(by=("word",), within="2s")).window(Tumbling("5s")).aggregate(n=Count())),
    ),
}


@pytest.mark.parametrize("name", JOBS)
@some_examples
@given(data=st.data(), shards=st.integers(1, 3))
def test_results_and_late_records_are_as_the_reference_says(
    agrees: Check, name: str, data: st.DataObject, shards: int
) -> None:
    topics, job = JOBS[name]
    agrees(job("0s"), data.draw(any_batches(topics)), shards)


@pytest.mark.parametrize("name", JOBS)
@some_examples
@given(data=st.data(), shards=st.integers(1, 3), pieces=st.integers(1, 4))
def test_a_bounded_run_gives_the_same_and_closes_what_is_open(
    name: str, data: st.DataObject, shards: int, pieces: int
) -> None:
    topics, job = JOBS[name][0], JOBS[name][1]("0s")
    drawn = data.draw(arrivals(topics))
    by_topic = {topic: [e.record for e in drawn if e.topic == topic] for topic in topics}
    rows, late = bounded(job, by_topic, shards, pieces)
    reference = reference_of(job.processor)
    expected, before = [], NEVER
    records = [row for topic in topics for r in by_topic[topic] for row in input_rows(job.inputs, topic, r)]
    latest = max((row["time"] for row in records), default=NEVER)
    for part, now in ((records, latest), ([], END_OF_TIME)):
        expected += reference.take(part, Progress(before, now))[0]
        before = now
    assert rows_of(rows) == rows_of(expected)
    assert late == []


@pytest.mark.parametrize("name", JOBS)
@some_examples
@given(data=st.data(), shards=st.integers(1, 3))
def test_results_do_not_depend_on_order_within_the_bound_batches_partitions_or_shards(
    agrees: Check, name: str, data: st.DataObject, shards: int
) -> None:
    topics, job = JOBS[name]
    shuffled, at_once = data.draw(shuffled_batches(topics, bound=4000))
    agrees(job("4s"), shuffled, shards, at_once)
