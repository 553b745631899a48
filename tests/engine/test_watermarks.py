"""Watermarks come from the log alone: idle, lagging and lying partitions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine.aggregates import Count
from engine.formats.columnar import ColumnarDecoder
from engine.formats.dead_letters import DeadLetter
from engine.reference import Arrival, Heartbeat, Watermark, interpret
from engine.spec.duration import NEVER
from engine.spec.errors import NewnormalError
from engine.spec.job import Job
from engine.spec.output import Output
from engine.spec.record import Keyword, Record
from engine.spec.source import Source
from engine.stream import Stream
from engine.watermarks import (
    AscendingTimestamps,
    BoundedOutOfOrderness,
    LearnedLateness,
    Marker,
    Punctuated,
    WatermarkStrategy,
    WatermarkTracker,
)
from engine.windows import Tumbling
from pipelines.contracts.records import Telemetry

T0 = 1_700_000_000_000
HOUR = 3_600_000


class Counted(Record):
    """Records of a window."""

    identity = ("entity", "metric", "window_end")

    entity: Keyword
    metric: Keyword
    window_end: int
    n: int


def passed_on() -> Job:
    stream = Stream.read(Source({"t": ColumnarDecoder(Telemetry)}, Telemetry)).key_by("entity")
    return stream.write("job", Output("out", Telemetry), Output("dead", DeadLetter, "json"))


def counted(lateness: str = "0s") -> Job:
    source = Source({"t": ColumnarDecoder(Telemetry)}, Telemetry, watermark=BoundedOutOfOrderness("0s", "10s"))
    stream = Stream.read(source).key_by("entity", "metric").window(Tumbling("10s"), lateness).aggregate(n=Count())
    return stream.write("job", Output("out", Counted), Output("dead", DeadLetter, "json"), Output("late", Telemetry))


def sample(partition: int, time: int, arrived: int) -> Arrival:
    record = {"time": time, "entity": f"host-{partition}", "metric": "m", "value": 1.0, "kind": "gauge"}
    return Arrival("t", partition, arrived, record)


def data(partition: int, time: int, arrived: int) -> Marker:
    return Marker("t", partition, time, None, arrived, arrived, arrived)


def beat(partition: int, arrived: int) -> Marker:
    return Marker("t", partition, NEVER, None, arrived, arrived, NEVER)


def test_an_idle_partition_does_not_stall_the_others() -> None:
    tracker = WatermarkTracker(BoundedOutOfOrderness("1s", idle_after="10s"))
    assert tracker.advance([data(0, T0, T0), data(1, T0, T0)]) == T0 - 1000
    assert tracker.advance([data(0, T0 + 9000, T0 + 9000), beat(1, T0 + 9000)]) == T0 - 1000
    assert tracker.advance([data(0, T0 + 20_000, T0 + 20_000), beat(1, T0 + 20_000)]) == T0 + 19_000


def test_a_partition_that_has_never_had_a_record_is_idle_by_its_heartbeats() -> None:
    tracker = WatermarkTracker(BoundedOutOfOrderness("1s", "10s", expected=(("t", 0), ("t", 1))))
    assert tracker.advance([data(0, T0, T0)]) == NEVER, "partition 1 was not read yet"
    assert tracker.advance([beat(1, T0)]) == NEVER
    assert tracker.advance([beat(1, T0 + 9999)]) == NEVER
    assert tracker.advance([beat(1, T0 + 10_000)]) == T0 - 1000


def test_a_partition_that_wakes_up_holds_the_watermark_back_but_never_turns_it_back() -> None:
    tracker = WatermarkTracker(BoundedOutOfOrderness("0s", idle_after="10s"))
    tracker.advance([data(0, T0, T0), data(1, T0, T0)])
    tracker.advance([data(0, T0 + 60_000, T0 + 60_000), beat(1, T0 + 60_000)])
    assert tracker.advance([data(1, T0 + 30_000, T0 + 60_000)]) == T0 + 60_000
    assert tracker.advance([data(0, T0 + 90_000, T0 + 62_000)]) == T0 + 60_000


def test_silence_in_all_partitions_closes_what_is_open(driven: Callable[..., Any]) -> None:
    job = counted()
    batches = [[sample(0, T0, T0), sample(1, T0 + 5000, T0)], [Heartbeat("t", p, T0 + 10_000) for p in (0, 1)]]
    assert driven(job, 2).run(batches).watermarks[-1] == interpret(job, batches).watermarks[-1] == T0 + 5000


def test_a_writer_without_a_watermark_yet_holds_the_watermark_back() -> None:
    tracker = WatermarkTracker(BoundedOutOfOrderness("0s"))
    assert tracker.advance([Marker("t", 0, T0, NEVER, T0, T0, T0)]) == NEVER
    assert tracker.advance([Marker("t", 0, NEVER, T0 - 5000, T0, T0, T0)]) == T0 - 5000


def test_a_partition_an_hour_behind_loses_nothing(driven: Callable[..., Any]) -> None:
    job, arrived = counted(), T0 + 2 * HOUR
    ahead = [[sample(0, T0 + HOUR + t, arrived), sample(1, T0 + t, arrived)] for t in range(0, HOUR, 300_000)]
    assert driven(job, 2).run(ahead).watermarks == interpret(job, ahead).watermarks
    assert interpret(job, ahead).late == []


def test_a_partition_whose_backlog_is_read_an_hour_late_loses_nothing() -> None:
    job = counted()
    backlog = [[sample(0, T0 + HOUR + t, T0 + HOUR + t), sample(1, T0 + t, T0 + t)] for t in range(0, HOUR, 300_000)]
    assert interpret(job, backlog).late == []


def test_one_wrong_clock_is_a_dead_letter_and_moves_no_watermark(driven: Callable[..., Any]) -> None:
    good, wrong = sample(0, T0, T0), sample(0, T0 + 365 * 24 * HOUR, T0)
    run = driven(passed_on()).run([[good, wrong]])
    assert run.watermarks == [T0]
    assert [letter["error.code"] for letter in run.dead] == ["TIME_AHEAD"]
    assert len(run.rows) == 1


def test_a_slightly_wrong_clock_moves_the_watermark_by_the_bound_at_most(driven: Callable[..., Any]) -> None:
    assert driven(passed_on()).run([[sample(0, T0 + 59_999, T0)]]).watermarks == [T0 + 59_999]


def test_no_writers_watermark_goes_beyond_the_bound_after_its_arrival(driven: Callable[..., Any]) -> None:
    job, lie = passed_on(), [[Watermark("t", 0, T0, T0 + 365 * 24 * HOUR)]]
    assert driven(job).run(lie).watermarks == interpret(job, lie).watermarks == [T0 + 60_000]


def test_a_writers_watermark_holds_whatever_the_records_say() -> None:
    tracker = WatermarkTracker(BoundedOutOfOrderness("1h"))
    assert tracker.advance([Marker("t", 0, T0 + 5000, T0, T0, T0, T0)]) == T0


def test_a_heartbeat_closes_windows_of_a_silent_partition(driven: Callable[..., Any]) -> None:
    job = passed_on()
    assert driven(job).run([[sample(0, T0, T0)], [Watermark("t", 0, T0, T0 + 30_000)]]).watermarks == [T0, T0 + 30_000]


@st.composite
def markers(draw: st.DrawFn) -> Marker:
    first, last = sorted(draw(st.tuples(st.integers(0, 100_000), st.integers(0, 100_000))))
    time, spoke = (draw(st.one_of(st.just(NEVER), st.integers(0, 100_000))) for _ in range(2))
    writer_watermark = draw(st.one_of(st.none(), st.just(NEVER), st.integers(0, 100_000)))
    return Marker("t", draw(st.integers(0, 3)), time, writer_watermark, first, last, min(spoke, last))


@settings(deadline=None)
@given(batches=st.lists(st.lists(markers(), max_size=4), max_size=6))
def test_a_watermark_never_goes_back_and_a_restored_tracker_goes_on_as_the_old_one(batches: list[list[Marker]]) -> None:
    config = BoundedOutOfOrderness("2s", "20s")
    tracker, last = WatermarkTracker(config), NEVER
    for batch in batches:
        restored = WatermarkTracker.restore(config, tracker.snapshot())
        now = tracker.advance(batch)
        assert now >= last
        assert restored.advance(reversed(batch)) == now, "whatever the order of the markers"
        last = now


STRATEGIES: dict[str, WatermarkStrategy] = {
    "ordered": AscendingTimestamps("20s"),
    "bounded": BoundedOutOfOrderness("2s", "20s"),
    "punctuated": Punctuated("time", idle_after="20s"),
    "learned": LearnedLateness(0.9, history="16s", most="10s", enough=3, idle_after="20s"),
}


@pytest.mark.parametrize("name", STRATEGIES)
@settings(deadline=None, max_examples=30)
@given(batches=st.lists(st.lists(markers(), max_size=4), max_size=6), data=st.data())
def test_whatever_the_strategy_it_never_goes_back_and_goes_on_alike_when_restored(
    name: str, batches: list[list[Marker]], data: st.DataObject
) -> None:
    strategy, offset = STRATEGIES[name], 0
    tracker, last = WatermarkTracker(strategy), NEVER
    for batch in batches:
        numbered = []
        for marker in batch:
            late = data.draw(st.lists(st.integers(0, 20_000), max_size=5))
            times = np.array([max(0, marker.max_time - t) for t in late if marker.max_time > NEVER], np.int64)
            numbered.append(replace(marker, offset=offset, observed=strategy.observed(times)))
            offset += 1
        restored = WatermarkTracker.restore(strategy, orjson.loads(orjson.dumps(tracker.snapshot())))
        now = tracker.advance(numbered)
        assert now >= last
        assert restored.advance(reversed(numbered)) == now, "whatever the order of the markers"
        assert restored.snapshot() == tracker.snapshot()
        last = now


def log_of(times: list[int], cuts: list[int], strategy: WatermarkStrategy) -> WatermarkTracker:
    """What one partition's log tells a tracker, cut into batches."""
    tracker = WatermarkTracker(strategy)
    for start, end in pairwise([0, *cuts, len(times)]):
        some = np.array(times[start:end], np.int64)
        if len(some):
            marker = Marker("t", 0, int(some.max()), None, T0, T0, T0, start, strategy.observed(some))
            tracker.advance([marker])
    return tracker


@settings(deadline=None, max_examples=50)
@given(
    lateness=st.lists(st.integers(0, 15_000), min_size=1, max_size=60), cuts=st.lists(st.integers(0, 60), max_size=4)
)
def test_what_is_learned_depends_on_the_log_and_not_on_how_it_is_cut(lateness: list[int], cuts: list[int]) -> None:
    strategy = LearnedLateness(0.9, history="16s", most="10s", enough=3)
    times = [T0 + 500 * i - late for i, late in enumerate(lateness)]
    cut = log_of(times, sorted(min(c, len(times)) for c in cuts), strategy)
    assert cut.clocks == log_of(times, [], strategy).clocks


def test_the_bound_is_learned_from_the_lateness_of_the_last_minutes() -> None:
    strategy = LearnedLateness(0.99, history="1m", most="60s", enough=100)
    rng = np.random.default_rng(1)

    def bound(times: np.ndarray) -> int:
        tracker = log_of(times.tolist(), list(range(100, len(times), 100)), strategy)
        return int(tracker.clocks[("t", 0)].max_time - strategy.watermark(tracker.clocks[("t", 0)]))

    steady = T0 + np.arange(0, 100_000, 20)
    late = steady - rng.integers(0, 5000, len(steady))
    behind = np.maximum.accumulate(late) - late
    assert bound(steady[:50]) == 60_000, "nothing is known yet"
    assert bound(steady) == 0
    assert abs(bound(late) - np.quantile(behind, 0.99)) <= 2 * strategy.resolution
    calm = np.concatenate([late, steady[-1] + 20 + np.arange(0, 120_000, 20)])
    assert bound(calm) == 0, "the history slides"
    assert bound(steady - rng.integers(0, 300_000, len(steady))) == 60_000, "never more than the most"


@pytest.mark.parametrize("wrong", [{"percentile": 0.0}, {"most": "0s"}, {"least": "2m"}, {"history": "0s"}])
def test_a_strategy_that_cannot_be_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(NewnormalError, match="WATERMARK_INVALID"):
        LearnedLateness(**wrong)


class Told(Record):
    """A sample, some of which say how far their sender has come."""

    identity = ("entity", "time")

    time: int
    entity: Keyword
    done: int | None = None


class Entities(Record):
    """Records of a window of a machine."""

    identity = ("entity", "window_end")

    entity: Keyword
    window_end: int
    n: int


def job_with(strategy: WatermarkStrategy) -> Job:
    stream = Stream.read(Source({"t": ColumnarDecoder(Told)}, Told, watermark=strategy)).key_by("entity")
    stream = stream.window(Tumbling("10s")).aggregate(n=Count())
    return stream.write("job", Output("out", Entities), Output("dead", DeadLetter, "json"), Output("late", Told))


def says(time: int, done: int | None = None, partition: int = 0) -> Arrival:
    return Arrival("t", partition, T0 + HOUR, {"time": T0 + time, "entity": "a", "done": done})


def test_punctuation_alone_moves_a_punctuated_watermark(driven: Callable[..., Any]) -> None:
    job = job_with(Punctuated("done"))
    batches = [[says(0), says(25_000)], [says(1000, done=T0 + 10_000)], [says(12_000), says(26_000, done=T0 + 26_000)]]
    run = driven(job).run(batches)
    assert run.watermarks == interpret(job, batches).watermarks == [NEVER, T0 + 10_000, T0 + 26_000]
    assert [(row["window_end"] - T0, row["n"]) for row in run.rows] == [(10_000, 2), (20_000, 1)]
    assert run.late == []


def test_a_lying_punctuation_moves_the_watermark_by_the_bound_at_most(driven: Callable[..., Any]) -> None:
    job, lie = job_with(Punctuated("done")), [[says(0, done=T0 + 365 * 24 * HOUR)]]
    assert driven(job).run(lie).watermarks == interpret(job, lie).watermarks == [T0 + HOUR + 60_000]


def test_a_partition_that_has_not_punctuated_yet_is_waited_for(driven: Callable[..., Any]) -> None:
    job = job_with(Punctuated("done"))
    batches = [[says(0, done=T0), says(5, partition=1)], [says(6, done=T0 + 6, partition=1)]]
    assert driven(job, 2).run(batches).watermarks == interpret(job, batches).watermarks == [NEVER, T0]


@pytest.mark.parametrize("name", ["ordered", "bounded", "learned"])
@settings(deadline=None, max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(times=st.lists(st.tuples(st.integers(0, 2), st.integers(0, 60_000)), min_size=1, max_size=25))
def test_operator_and_reference_have_the_same_watermarks(
    driven: Callable[..., Any], name: str, times: list[tuple[int, int]]
) -> None:
    job = job_with(STRATEGIES[name])
    entries = [says(time, partition=partition) for partition, time in times]
    batches = [entries[:8], entries[8:12], entries[12:]]
    run, outcome = driven(job, 2).run(batches), interpret(job, batches)
    assert run.watermarks == outcome.watermarks
    assert len(run.late) == len(outcome.late)
