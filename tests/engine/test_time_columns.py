"""First, last and rate go by the time that the job works on, in whatever column that is."""

from __future__ import annotations

from typing import Any

import pytest

from engine.aggregates import AnyAggregate, First, Last, Rate
from engine.formats.columnar import ColumnarDecoder
from engine.formats.dead_letters import DeadLetter
from engine.spec.job import Job
from engine.spec.output import Output
from engine.spec.record import Finite, Keyword, Record
from engine.spec.source import Source, TimeBounds, TimeDomain
from engine.stream import Stream
from engine.testing import TestStream, run
from tests.engine.ways import WAYS, windowed

T0 = 1_700_000_000_000


class Plain(Record):
    """A record without a column "time"."""

    identity = ("key", "ts")

    key: Keyword
    ts: int
    value: Finite


class Race(Record):
    """A record whose column "time" is something else: how long a lap took."""

    identity = ("key", "ts")

    key: Keyword
    ts: int
    value: Finite
    time: int


class Ends(Record):
    """A result."""

    identity = ("key", "window_start", "window_end")

    key: Keyword
    window_start: int
    window_end: int
    revision: int = 0
    pane: int = 0
    timing: Keyword = "on_time"
    first: Finite | None = None
    last: Finite | None = None
    rate: Finite | None = None


def job(way: str, record: type[Record], clock: TimeDomain) -> Job:
    source = Source({"t": ColumnarDecoder(record)}, record, "ts", bounds=TimeBounds(max_ahead="3650d"))
    wanted: dict[str, AnyAggregate] = {"first": First("value"), "last": Last("value"), "rate": Rate("value")}
    stream = windowed(Stream.read(source).timed(clock).key_by("key"), way, wanted)
    dead = Output("dead", DeadLetter, "json")
    return stream.write("job", Output("out", Ends, partitions=1), dead, Output("late", record))


@pytest.mark.parametrize("on", ["reference", "operator", "bounded"])
@pytest.mark.parametrize("clock", ["event", "ingestion", "processing"])
@pytest.mark.parametrize("record", [Plain, Race])
@pytest.mark.parametrize("way", WAYS)
def test_the_first_is_the_first_by_the_clock_of_the_job(
    way: str, record: type[Record], clock: TimeDomain, on: str
) -> None:
    """By event time the values are 1, 2, 4, 8, two seconds apart; they arrive as 8, 4, 2, 1, one second apart."""
    stream = TestStream(T0)
    for second, (at, value) in enumerate([(6, 8.0), (4, 4.0), (2, 2.0), (0, 1.0)]):
        row: dict[str, Any] = {"key": "a", "ts": T0 + at * 1000, "value": value}
        stream = stream.add(row | ({"time": second} if record is Race else {})).advance_clock("1s")
    stream = stream.advance_watermark("3h").advance_clock("3h")
    rows = run(job(way, record, clock), stream, on).rows
    (row,) = (r for r in rows if way != "several slices" or r["window_start"] == T0)
    up, down = (1.0, 8.0, 7 / 6), (8.0, 1.0, None)  # a counter that falls has begun anew: no increase is known
    first, last, rate = up if clock == "event" else down
    assert (row["first"], row["last"]) == (first, last)
    if "slices" in way:
        assert row["rate"] == (rate and pytest.approx(rate))
