"""Side outputs of a user's own logic, alone and followed by operators: expected results worked out by hand."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest

from engine import (
    Count,
    EachKey,
    Instant,
    Job,
    KeyCallback,
    Logic,
    Max,
    Process,
    Record,
    Stream,
    Sum,
    Timer,
    Tumbling,
    Turn,
    aside,
)
from engine.spec.errors import NewnormalError
from engine.testing import ABORT, RESTART, Run, TestStream, run

T0 = 1_700_000_000_000
Row = dict[str, Any]
RUNNERS = ("reference", "operator", "bounded")


class Reading(Record):
    time: Instant
    sensor: str
    celsius: float


class Risen(Record):
    time: Instant
    sensor: str
    rise: float


class Broken(Record):
    time: Instant
    sensor: str
    celsius: float | None = None
    silent: bool | None = None


class Highest(Record):
    sensor: str
    window_start: Instant
    n: int
    highest: float


class Total(Record):
    sensor: str
    window_start: Instant
    total: float


class Sorted(Logic):
    """Passes a reading on; gives one above 100 to `broken` instead, and a sensor of which nothing comes for 20 s."""

    def needs(self) -> tuple[str, ...]:
        return ("celsius",)

    def on_records(self, turn: Turn) -> None:
        broken = turn["celsius"] > 100
        turn.emit({"celsius": turn["celsius"]}, where=broken, to="broken")
        turn.forward(where=~broken)
        turn.timer[:] = turn.time + 20_000

    def on_timers(self, turn: Turn) -> None:
        turn.emit({"silent": np.ones(len(turn), bool)}, to="broken")


class Rise(KeyCallback):
    """By how much a sensor has risen; a rise of more than 5 also goes to `alarms`, one of more than 50 to `broken`."""

    def on_record(self, record: Row, state: Row, timer: Timer) -> Iterable[Row]:
        rise = record["celsius"] - state.get("last", record["celsius"])
        state["last"] = record["celsius"]
        yield {"rise": rise}
        if rise > 5:
            yield aside("alarms", rise=rise)
        if rise > 50:
            yield aside("broken", celsius=record["celsius"])


def readings() -> Stream:
    return Stream.read_json("readings", Reading).key_by("sensor")


def by_emit() -> Job:
    """`turn.emit(to=...)`, from records and from timers."""
    return readings().process(Process(Sorted())).write("sorted", Reading, side={"broken": Broken})


def by_aside() -> Job:
    """`aside`, to two outputs; a third one by a condition on the main results."""
    side = {"alarms": Risen, "broken": Broken, "falling": "rise < 0"}
    return readings().process(Process(EachKey(Rise(), ("celsius",)))).write("risen", Risen, side=side)


def behind_a_chain() -> Job:
    """Windows behind own logic: what the logic gives aside passes the windows by, and those of its output pass too."""
    sums = readings().process(Process(Sorted())).window(Tumbling("10s"))
    side = {"broken": Broken, "frequent": "n > 1"}
    return sums.aggregate(n=Count(), highest=Max("celsius")).write("sums", Highest, side=side)


def of_two_logics() -> Job:
    """Own logic behind own logic, with a step between: both give to the same output."""
    checked = readings().process(Process(Sorted())).filter("celsius > -50")
    rises = checked.process(Process(EachKey(Rise(), ("celsius",))))
    return rises.write("rises", Risen, side={"broken": Broken, "alarms": Risen})


def stream() -> TestStream:
    """Two sensors; the job dies once and is restored once, each between records that belong together."""
    came = TestStream(T0, topics=("readings",)).advance_clock("1h").add(at(1, "a", 20.0), at(2, "b", 120.0))
    came = came.add(at(3, "a", 27.0), ABORT, at(4, "a", 90.0), at(5, "b", -60.0)).advance_watermark("6s")
    came = came.add(RESTART, at(12, "a", 101.0), at(13, "a", 80.0), at(14, "a", 81.0)).advance_watermark("20s")
    return came.advance_watermark("1m")


def at(second: int, sensor: str, celsius: float) -> Row:
    return {"time": T0 + second * 1000, "sensor": sensor, "celsius": celsius}


def seen(rows: Iterable[Row], *columns: str) -> list[tuple[Any, ...]]:
    """Rows in order of their time, as seconds, sensor and columns; what is absent is ``None``."""
    found = [(((r.get("time") or r["window_start"]) - T0) // 1000, r["sensor"], *map(r.get, columns)) for r in rows]
    return sorted(found, key=repr)


SILENT = [(25, "b", None, True), (34, "a", None, True)]
"""20 s after the last reading of each sensor."""


def assert_by_emit(got: Run) -> None:
    assert seen(got.rows, "celsius") == [
        (1, "a", 20.0), (13, "a", 80.0), (14, "a", 81.0), (3, "a", 27.0), (4, "a", 90.0), (5, "b", -60.0),
    ]  # fmt: skip
    assert set(got.side) == {"broken"}
    assert seen(got.side["broken"], "celsius", "silent") == [
        (12, "a", 101.0, None), (2, "b", 120.0, None), *SILENT,
    ]  # fmt: skip
    for row in got.rows:
        told = {name for name, value in row.items() if value is not None}
        assert told == {"time", "sensor", "celsius"}, "nothing of the side output is in the results"


def assert_by_aside(got: Run) -> None:
    assert seen(got.rows, "rise") == [
        (1, "a", 0.0), (12, "a", 11.0), (13, "a", -21.0), (14, "a", 1.0), (2, "b", 0.0), (3, "a", 7.0), (4, "a", 63.0),
        (5, "b", -180.0),
    ]  # fmt: skip
    assert seen(got.side["alarms"], "rise") == [(12, "a", 11.0), (3, "a", 7.0), (4, "a", 63.0)]
    assert seen(got.side["broken"], "celsius") == [(4, "a", 90.0)]
    assert seen(got.side["falling"], "rise") == [(13, "a", -21.0), (5, "b", -180.0)]


def assert_behind_a_chain(got: Run) -> None:
    """The readings that were given aside are not counted."""
    assert seen(got.rows, "n", "highest") == [(0, "a", 3, 90.0), (0, "b", 1, -60.0), (10, "a", 2, 81.0)]
    assert seen(got.side["broken"], "celsius", "silent") == [(12, "a", 101.0, None), (2, "b", 120.0, None), *SILENT]
    assert seen(got.side["frequent"], "n") == [(0, "a", 3), (10, "a", 2)]


def assert_of_two_logics(got: Run) -> None:
    """The reading of -60 does not come to the second logic, nor do those above 100."""
    assert seen(got.rows, "rise") == [
        (1, "a", 0.0), (13, "a", -10.0), (14, "a", 1.0), (3, "a", 7.0), (4, "a", 63.0),
    ]  # fmt: skip
    assert seen(got.side["alarms"], "rise") == [(3, "a", 7.0), (4, "a", 63.0)]
    assert seen(got.side["broken"], "celsius", "silent") == [
        (12, "a", 101.0, None), (2, "b", 120.0, None), *SILENT, (4, "a", 90.0, None),
    ]  # fmt: skip


CASES = {
    "by emit": (by_emit, assert_by_emit),
    "by aside": (by_aside, assert_by_aside),
    "behind a chain": (behind_a_chain, assert_behind_a_chain),
    "of two logics": (of_two_logics, assert_of_two_logics),
}


@pytest.mark.parametrize("runner", RUNNERS)
@pytest.mark.parametrize("name", CASES)
def test_what_is_given_aside_goes_to_its_output_only(name: str, runner: str) -> None:
    job, expected = CASES[name]
    expected(run(job(), stream(), on=runner, shards=1 if runner == "reference" else 2))


def test_an_output_that_the_job_does_not_have_is_refused_though_an_operator_follows() -> None:
    sums = readings().process(Process(Sorted())).window(Tumbling("10s")).aggregate(total=Sum("celsius"))
    with pytest.raises(NewnormalError, match="SIDE_UNKNOWN: broken") as refused:
        run(sums.write("sums", Total, side={"high": "total > 100"}), stream())
    assert refused.value.accepted == "high"
