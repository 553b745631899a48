"""The watermark of a job is the one that the reference works out from docs/engine.md, whatever the strategy."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from engine.aggregates import Count
from engine.formats.columnar import ColumnarDecoder
from engine.formats.dead_letters import DeadLetter
from engine.reference import Arrival, Entry, Heartbeat, Watermark, interpret
from engine.spec.duration import NEVER
from engine.spec.job import Job
from engine.spec.output import Output
from engine.spec.record import Record
from engine.spec.source import Source, TimeBounds
from engine.stream import Stream
from engine.testing import Driven
from engine.watermarks import (
    AscendingTimestamps,
    BoundedOutOfOrderness,
    LearnedLateness,
    Prompt,
    Punctuated,
    WatermarkStrategy,
)
from engine.windows import Tumbling
from tests.engine.panes import Event, Pane, event

T0 = 1_700_000_000_000


class Marked(Record):
    """An event that may say how far event time has come."""

    identity = ("key", "time")

    key: str
    time: int
    value: float
    done: int | None = None


STRATEGIES: dict[str, WatermarkStrategy] = {
    "ascending": AscendingTimestamps("6s"),
    "bounded": BoundedOutOfOrderness("2s", "6s"),
    "bounded, one partition awaited": BoundedOutOfOrderness("2s", "6s", expected=(("t", 1),)),
    "prompt": Prompt("1s", "6s"),
    "punctuated": Punctuated("done", idle_after="6s"),
    "punctuated by some": Punctuated("time", where=("key", "b"), idle_after="6s"),
    "learned": LearnedLateness(0.6, history="8s", most="5s", enough=3, idle_after="6s"),
    "learned at least": LearnedLateness(0.9, history="16s", least="2s", most="10s", enough=2, idle_after="6s"),
}


def source(topic: str, strategy: WatermarkStrategy) -> Source:
    bounds = TimeBounds(max_ahead="20s")
    return Source({topic: ColumnarDecoder(Marked)}, Marked, watermark=strategy, bounds=bounds)


def counting(*streams: Stream) -> Job:
    stream = streams[0]
    for other in streams[1:]:
        stream = stream.merge(other)
    out, dead = Output("out", Pane, partitions=1), Output("dead", DeadLetter, "json")
    counted = stream.key_by("key").window(Tumbling("5s")).aggregate(n=Count())
    return counted.write("job", out, dead, Output("late", Event))


@st.composite
def batches(draw: st.DrawFn, topics: str = "t", watermarks: bool = True) -> list[list[Entry]]:
    """Messages of two partitions a topic; the arrival time of each partition goes on in whole seconds, at 0 s often."""
    arrived = {(topic, partition): T0 for topic in topics for partition in (0, 1)}
    drawn: list[list[Entry]] = []
    for _ in range(draw(st.integers(1, 7))):
        batch: list[Entry] = []
        for _ in range(draw(st.integers(0, 6))):
            place = draw(st.sampled_from(sorted(arrived)))
            arrived[place] += draw(st.integers(0, 4)) * 1000
            at = arrived[place]
            kinds = ["record", "record", "heartbeat", *(["watermark"] if watermarks else [])]
            kind = draw(st.sampled_from(kinds))
            if kind == "heartbeat":
                batch.append(Heartbeat(*place, at))
            elif kind == "watermark":
                watermark = draw(st.one_of(st.just(NEVER), st.integers(-10, 25).map(lambda s, at=at: at + s * 1000)))
                batch.append(Watermark(*place, at, watermark))
            else:
                time = at + draw(st.integers(-12, 19)) * 1000
                done = draw(st.one_of(st.none(), st.integers(-10, 25).map(lambda s, at=at: at + s * 1000)))
                row: dict[str, Any] = event(draw(st.sampled_from("ab")), time, 1.0) | {"done": done}
                batch.append(Arrival(*place, at, row))
        drawn.append(batch)
    return drawn


some = settings(
    deadline=None,
    max_examples=25,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    suppress_health_check=[HealthCheck.too_slow],
)


@pytest.mark.parametrize("name", STRATEGIES)
@some
@given(data=st.data())
def test_of_one_input(name: str, data: st.DataObject) -> None:
    input = data.draw(batches(watermarks=data.draw(st.booleans())))
    job = counting(Stream.read(source("t", STRATEGIES[name])))
    assert Driven(job).run(input).watermarks == interpret(job, input).watermarks


@some
@given(input=batches("lr"), holds=st.booleans(), name=st.sampled_from(["ascending", "bounded", "punctuated"]))
def test_of_two_inputs(input: list[list[Entry]], holds: bool, name: str) -> None:
    left, right = source("l", BoundedOutOfOrderness("1s", "6s")), source("r", STRATEGIES[name])
    job = counting(Stream.read(left), Stream.read(replace(right, holds=holds)))
    assert Driven(job).run(input).watermarks == interpret(job, input).watermarks


@pytest.mark.parametrize("clock", ["ingestion", "processing"])
@some
@given(input=batches(watermarks=False))
def test_by_arrival_and_by_the_clock(clock: Any, input: list[list[Entry]]) -> None:
    job = counting(Stream.read(source("t", BoundedOutOfOrderness("2s", "6s"))).timed(clock, "time"))
    assert Driven(job).run(input).watermarks == interpret(job, input).watermarks
