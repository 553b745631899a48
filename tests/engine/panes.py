"""A small job with windows of any kind, for tests of windows, triggers and panes."""

from __future__ import annotations

from typing import Any

from engine.aggregates import AnyAggregate, Count, Max, Sum
from engine.formats.columnar import ColumnarDecoder
from engine.formats.dead_letters import DeadLetter
from engine.spec.job import Job
from engine.spec.output import Output
from engine.spec.record import Keyword, Record
from engine.spec.source import Source, TimeDomain
from engine.spec.time_bounds import TimeBounds
from engine.stream import Stream
from engine.triggers import ACCUMULATING, Accumulation, Trigger
from engine.windows import Evictor, Window


class Event(Record):
    """Something with a number."""

    identity = ("key", "time")

    key: Keyword
    time: int
    value: float


class Pane(Record):
    """A result."""

    identity = ("key", "window_start", "window_end", "pane")

    key: Keyword
    window_start: int
    window_end: int
    pane: int = 0
    timing: Keyword = "on_time"
    revision: int = 0
    retraction: bool = False
    sum: float | None = None
    n: int | None = None
    max: float | None = None


AGGREGATES: dict[str, AnyAggregate] = {"sum": Sum("value"), "n": Count(), "max": Max("value")}


def job(
    window: Window,
    trigger: Trigger | None = None,
    panes: Accumulation = ACCUMULATING,
    lateness: str = "0s",
    evict: Evictor | None = None,
    clock: TimeDomain = "event",
) -> Job:
    source = Source({"t": ColumnarDecoder(Event)}, Event, bounds=TimeBounds(max_ahead="3650d"))
    stream = Stream.read(source).timed(clock).key_by("key").window(window, lateness)
    if trigger is not None:
        stream = stream.trigger(trigger, panes, evict)
    out, dead, late = Output("out", Pane, partitions=1), Output("dead", DeadLetter, "json"), Output("late", Event)
    return stream.aggregate(**AGGREGATES).write("job", out, dead, late)


def event(key: str, time: int, value: float) -> dict[str, Any]:
    return {"key": key, "time": time, "value": value}
