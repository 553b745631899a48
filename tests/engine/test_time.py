"""Event, ingestion and processing time: what a job works on, and that all ways to run it agree."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.aggregates import Count
from engine.explain.plan import explain
from engine.formats.columnar import ColumnarDecoder
from engine.formats.dead_letters import DeadLetter
from engine.operators import Broadcast, Deduplicate
from engine.reference import Arrival, Heartbeat
from engine.runtime.input_clocks import InputClocks
from engine.spec.errors import NewnormalError
from engine.spec.job import Job
from engine.spec.output import Output
from engine.spec.record import Keyword, Record
from engine.spec.source import Source, TimeDomain
from engine.stream import Stream
from engine.testing import Batch, TestStream, run
from engine.triggers import ACCUMULATING, AccumulatingAndRetracting, Accumulation, AfterWatermark, Trigger
from engine.windows import Session, Tumbling, Window
from tests.engine.operators.conftest import Missed, Point, Result, points, rules
from tests.engine.panes import event, job
from tests.engine.test_general_windows import PANES, TRIGGERS, WINDOWS, few, panes, streams

T0 = 1_700_000_000_000 // 60_000 * 60_000
CLOCKS: list[TimeDomain] = ["ingestion", "processing"]


@pytest.mark.parametrize("clock", CLOCKS)
@pytest.mark.parametrize("window", WINDOWS.values(), ids=WINDOWS)
@few
@given(
    stream=streams(),
    trigger=st.sampled_from(list(TRIGGERS.values())),
    how=st.sampled_from(PANES),
    shards=st.sampled_from([1, 2]),
)
def test_panes_are_those_of_the_reference(
    clock: TimeDomain, window: Window, stream: TestStream, trigger: Trigger, how: Accumulation, shards: int
) -> None:
    counting = job(window, trigger, how, clock=clock)
    wanted, got = run(counting, stream, "reference"), run(counting, stream, "operator", shards)
    assert got.watermarks == wanted.watermarks
    assert panes(got) == panes(wanted)
    assert got.late == wanted.late == []


@pytest.mark.parametrize("clock", CLOCKS)
@few
@given(stream=streams())
def test_bounded_input_gives_the_same(clock: TimeDomain, stream: TestStream) -> None:
    """The steps of a stream come one after the other, so that a micro-batch is of one instant."""
    apart = replace(stream, batches=tuple(Batch((e,)) for some in stream.entries() for e in some))
    for window in (Tumbling("10s"), Session("3s")):
        counting = job(window, None, ACCUMULATING, clock=clock)
        ended = apart.advance_clock("1d")
        live, bounded = run(counting, ended, "operator"), run(counting, ended, "bounded")
        assert live.final(("key",)).keys() == bounded.final(("key",)).keys()
        assert {k: r["sum"] for k, r in live.final(("key",)).items()} == {
            k: r["sum"] for k, r in bounded.final(("key",)).items()
        }


def lagging() -> TestStream:
    """The first partition is at 12 s when a record is read from the second one that arrived there at 5 s."""
    batches: list[tuple[Any, ...]] = [
        (Arrival("t", 0, T0, event("a", 0, 1)), Heartbeat("t", 1, T0)),
        (Arrival("t", 0, T0 + 12_000, event("a", 0, 2)),),
        (Arrival("t", 1, T0 + 5_000, event("a", 0, 4)),),
        (Heartbeat("t", 0, T0 + 30_000), Heartbeat("t", 1, T0 + 30_000)),
    ]
    return TestStream(T0, partitions=2, batches=tuple(Batch(batch) for batch in batches))


@pytest.mark.parametrize("on", ["reference", "operator"])
@pytest.mark.parametrize(("clock", "sums"), [("ingestion", {0: 5, 10: 2}), ("processing", {0: 1, 10: 6})])
def test_ingestion_time_waits_for_a_partition_and_processing_time_does_not(
    on: str, clock: TimeDomain, sums: dict[int, int]
) -> None:
    got = run(job(Tumbling("10s"), clock=clock), lagging(), on)
    assert {(row["window_start"] - T0) // 1000: row["sum"] for row in got.rows} == sums
    assert got.late == []


class Untimed(Record):
    """A record that says nothing of time."""

    identity = ("key",)

    key: Keyword
    value: float


class Stamped(Untimed):
    """What is made of it."""

    arrived: int | None = None
    processed: int | None = None


@pytest.mark.parametrize(("clock", "column"), [("ingestion", "arrived"), ("processing", "processed")])
def test_records_need_no_time_of_their_own(clock: TimeDomain, column: str) -> None:
    source = Source({"t": ColumnarDecoder(Untimed)}, Untimed)
    stream = Stream.read(source).timed(clock).key_by("key").process(Deduplicate(within="1s"))
    made = stream.write("j", Output("out", Stamped), Output("dead", DeadLetter, "json"), Output("late", Untimed))
    given = TestStream(T0).add({"key": "a", "value": 1.0}, {"key": "a", "value": 2.0}).advance_clock("3s")
    given = given.add({"key": "a", "value": 3.0}).advance_clock("3s")
    for on in ("reference", "operator", "bounded"):
        assert [row[column] - T0 for row in run(made, given, on).rows] == [0, 3000], on


def test_a_plan_says_which_time_it_is() -> None:
    texts = {clock: str(explain(job(Tumbling("10s"), clock=clock))) for clock in ("event", *CLOCKS)}  # type: ignore[arg-type]
    assert "event time: time, at most 3650d ahead" in texts["event"]
    assert "ingestion time: arrived" in texts["ingestion"]
    assert "processing time: processed" in texts["processing"]


def test_inputs_that_tell_time_differently_are_refused() -> None:
    other = Stream.read(points("r")).timed("ingestion", "time")
    with pytest.raises(NewnormalError, match="INPUTS_CLASH"):
        Stream.read(points("l")).merge(other).key_by("key").write(
            "j", Output("o", Result), Output("d", DeadLetter, "json")
        )
    with pytest.raises(NewnormalError, match="STREAM_ORDER"):
        Stream.read(points("l")).key_by("key").process(Deduplicate(within="1s")).timed("ingestion")


def test_the_clock_outlives_a_restart() -> None:
    sources = job(Tumbling("10s"), clock="processing").inputs
    assert InputClocks(sources, {"clocks": [["t", 0, 5, None, 7, 7, {}]], "watermark": 3}).watermark == 7


class Needy(Record):
    """A late record that cannot do without a column of its own."""

    identity = ("key", "time")

    key: Keyword
    time: int
    reason: str


class Textual(Record):
    """A late record of which a column is of another type."""

    identity = ("key", "time")

    key: Keyword
    time: int
    value: str


def ruled(late: type[Record]) -> Job:
    stream = Stream.read(points("l")).key_by("key").join(Stream.read(rules()), Broadcast(identity=("rule",)))
    return stream.write("j", Output("o", Result), Output("d", DeadLetter, "json"), Output("late", late))


def test_a_late_topic_that_cannot_hold_what_is_late_is_refused_when_the_job_is_made() -> None:
    assert ruled(Point).late is not None  # a rule, which has no key, is never late
    assert ruled(Missed).late is not None
    single = Stream.read(points("l")).key_by("key").window(Tumbling("5s")).aggregate(n=Count())
    for record in (Needy, Textual):
        with pytest.raises(NewnormalError, match="LATE_MISFIT"):
            single.write("j", Output("o", Result), Output("d", DeadLetter, "json"), Output("late", record))


def test_revisions_that_come_too_late_for_a_second_window_must_fit_the_late_topic_too() -> None:
    def windowed(lateness: str) -> Stream:
        first = Stream.read(points("l")).key_by("key").window(Tumbling("5s"), lateness)
        first = first.trigger(AfterWatermark(), AccumulatingAndRetracting()).aggregate(n=Count())
        return first.window(Tumbling("10s")).aggregate(n=Count())

    def write(stream: Stream) -> Job:
        return stream.write("j", Output("o", Result), Output("d", DeadLetter, "json"), Output("late", Point))

    assert write(windowed("0s")).late is not None
    with pytest.raises(NewnormalError, match="LATE_MISFIT: Point needs time, but records with key, window_start"):
        write(windowed("1m"))
