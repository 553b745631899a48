"""An aggregation over the results of windows, by the Dataflow model; what is expected is counted from the records.

The event time of a window's result is its last instant (Beam: ``window.maxTimestamp()``; Flink: ``window_time``, which
is the end less a millisecond), so that windows of windows nest.
"""

from __future__ import annotations

from typing import Any

import pytest

from engine import (
    AccumulatingAndRetracting,
    AfterCount,
    AfterWatermark,
    Calendar,
    Count,
    CountWindows,
    Deduplicate,
    DeltaWindows,
    Discarding,
    Max,
    Mean,
    Session,
    Sliding,
    Stream,
    Sum,
    Tumbling,
)
from engine.spec.errors import NewnormalError
from engine.testing import RESTART, TestStream, run
from tests.engine.readings import T0, Reading

BOTH = pytest.mark.parametrize("on", ["reference", "operator"])


def reading(second: float, v: float = 1.0) -> dict[str, Any]:
    return {"time": T0 + int(second * 1000), "k": "x", "v": v}


def first(window: Any = Tumbling("10s"), lateness: str = "0s") -> Stream:  # noqa: B008
    return Stream.read_json("t", Reading).key_by("k").window(window, lateness)


def bounds(row: dict[str, Any]) -> tuple[float, float]:
    return (row["window_start"] - T0) / 1000, (row["window_end"] - T0) / 1000


@BOTH
@pytest.mark.parametrize("together", [True, False])
@pytest.mark.parametrize("outer", [Tumbling("1m"), Sliding("2m", every="1m"), Calendar("day")], ids=repr)
def test_windows_of_windows_nest(outer: Any, together: bool, on: str) -> None:
    """The boundary: the result of [50, 60) belongs to minute 0, not to minute 1."""
    job = first().aggregate(n=Count()).window(outer).aggregate(total=Sum("n"), parts=Count()).write("o")
    stream = TestStream(T0).advance_clock("72h")
    if together:
        stream = stream.add(*(reading(i) for i in range(120)))
    else:
        for i in range(12):
            stream = stream.add(*(reading(10 * i + j) for j in range(10)), RESTART).advance_watermark(f"{10 * i + 9}s")
    rows = run(job, stream.advance_watermark("48h"), on=on).rows
    totals = {bounds(r): (r["total"], r["parts"]) for r in rows}
    expected: dict[Any, dict[Any, Any]] = {
        Tumbling: {(0, 60): (60, 6), (60, 120): (60, 6)},
        Sliding: {(-60, 60): (60, 6), (0, 120): (120, 12), (60, 180): (60, 6)},
        Calendar: {(0, 86_400): (120, 12)},
    }
    assert totals == expected[type(outer)]
    assert not run(job, stream, on=on).late


@BOTH
def test_windows_of_the_same_length_stay_in_their_windows(on: str) -> None:
    job = first(Tumbling("5s")).aggregate(n=Count()).window(Tumbling("5s")).aggregate(m=Sum("n")).write("o")
    stream = TestStream(T0).add(*(reading(i) for i in range(10))).advance_watermark("30s")
    assert [(bounds(r), r["m"]) for r in run(job, stream, on=on).rows] == [((0, 5), 5), ((5, 10), 5)]


@BOTH
def test_sessions_of_windows_begin_at_the_last_instant_of_the_first_window(on: str) -> None:
    job = first().aggregate(n=Count()).window(Session("15s")).aggregate(m=Sum("n")).write("o")
    stream = TestStream(T0).advance_clock("1h").add(reading(1), reading(11), reading(41)).advance_watermark("200s")
    found = [(bounds(r), r["m"]) for r in run(job, stream, on=on).rows]
    assert found == [((9.999, 34.999), 2), ((49.999, 64.999), 1)]


RETRACTING = AfterWatermark(early=AfterCount(1))


@BOTH
@pytest.mark.parametrize("shards", [1, 2])
def test_what_windows_retract_is_taken_off_again(shards: int, on: str) -> None:
    windows = first(lateness="1m").trigger(RETRACTING, AccumulatingAndRetracting())
    parts = windows.aggregate(n=Count(), s=Sum("v")).filter("n > 0").window(Tumbling("1m"), "2m")
    job = parts.aggregate(windows=Count(), n=Sum("n"), s=Sum("s"), mean=Mean("s")).write("o")
    stream = TestStream(T0).add(reading(1, 2.0), reading(2, 3.0)).add(reading(3, 5.0), RESTART).add(reading(55, 7.0))
    stream = stream.advance_watermark("61s").add(reading(56, 11.0)).advance_watermark("10m")
    last = run(job, stream, on=on, shards=shards).rows[-1]
    assert (bounds(last), last["windows"], last["n"], last["s"], last["mean"]) == ((0, 60), 2, 5, 28.0, 14.0)


@BOTH
def test_panes_that_discard_add_up(on: str) -> None:
    windows = first().trigger(RETRACTING, Discarding())
    job = windows.aggregate(n=Count()).window(Tumbling("1m")).aggregate(total=Sum("n")).write("o")
    stream = TestStream(T0).add(reading(1), reading(2)).add(reading(3)).advance_watermark("10m")
    assert [r["total"] for r in run(job, stream, on=on).rows] == [3]


@pytest.mark.parametrize(
    "windows",
    [
        lambda: first(lateness="5m").aggregate(n=Count()),
        lambda: first().trigger(RETRACTING).aggregate(n=Count()),
        lambda: first(lateness="5m").aggregate(n=Count()).filter("n > 1"),
        lambda: (
            first().trigger(RETRACTING, AccumulatingAndRetracting()).aggregate(n=Count()).select("k", "window_end", "n")
        ),
    ],
)
@pytest.mark.parametrize("outer", [Tumbling("1m"), CountWindows(3)], ids=repr)
def test_results_that_later_ones_replace_are_not_counted_again(windows: Any, outer: Any) -> None:
    with pytest.raises(NewnormalError, match="PANES_REPEATED") as refused:
        windows().window(outer).aggregate(total=Sum("n"))
    assert "AccumulatingAndRetracting" in refused.value.accepted


def test_what_cannot_be_taken_back_is_refused() -> None:
    windows = first().trigger(RETRACTING, AccumulatingAndRetracting()).aggregate(n=Count())
    with pytest.raises(NewnormalError, match="AGGREGATE_UNSUPPORTED"):
        windows.window(Tumbling("1m")).aggregate(most=Max("n"))
    with pytest.raises(NewnormalError, match="PANES_REPEATED"):
        windows.window(CountWindows(3)).aggregate(n=Count())


@pytest.mark.parametrize("process", ["window", "ordered"])
def test_a_record_that_a_step_leaves_without_a_time_is_a_dead_letter(process: str) -> None:
    class Stated(Reading):
        stated: str | None = None

    stream = Stream.read_json("t", Stated).map(time="try_cast(stated as bigint)").key_by("k")
    job = stream.window(Tumbling("10s")).aggregate(n=Count()).write("o") if process == "window" else stream.write("o")
    rows = [reading(1) | {"stated": str(T0 + 1000)}, reading(2) | {"stated": "soon"}, reading(3)]
    outcome = run(job, TestStream(T0).add(*rows).add(reading(4) | {"stated": str(T0 + 4000)}).advance_watermark("1m"))
    assert sum(row.get("n", 1) for row in outcome.rows) == 2
    assert [letter.get("error.code") for letter in outcome.dead] == ["TIME_MISSING"]  # both are of one message
    assert len(run(job, TestStream(T0).add(*rows).advance_watermark("1m"), on="reference").rows) == 1


@BOTH
def test_a_result_that_a_step_leaves_without_a_time_is_late_and_not_lost(on: str) -> None:
    windows = first().aggregate(n=Count()).map(window_end="case when n > 1 then window_end end")
    job = windows.window(Tumbling("1m")).aggregate(total=Sum("n")).write("o")
    stream = TestStream(T0).add(reading(1), reading(2), reading(11)).advance_watermark("10m")
    found = run(job, stream, on=on)
    assert [r["total"] for r in found.rows] == [2]
    assert len(found.late) == 1


@BOTH
@pytest.mark.parametrize("together", [True, False])
def test_an_operator_between_two_windows_lets_no_part_come_late(together: bool, on: str) -> None:
    """Watermarks on whole minutes: the last part of a minute is there when the minute closes, not 1 ms later."""
    between = first().aggregate(n=Count()).process(Deduplicate(by=("window_start",), within="1h"))
    job = between.window(Tumbling("1m")).aggregate(parts=Count(), total=Sum("n")).write("o")
    stream = TestStream(T0).advance_clock("1h")
    for n in range(12):
        stream = stream.add(reading(10 * n + 5))
        stream = stream if together else stream.advance_watermark(f"{10 * n + 10}s")
    found = run(job, stream.advance_watermark("10m"), on=on)
    assert [(row["parts"], row["total"]) for row in found.rows] == [(6, 6), (6, 6)]
    assert not found.late


class Numbered(Reading):
    """A whole number beside the value."""

    n: int = 0


@BOTH
def test_a_sum_over_windows_that_retract_is_no_result_where_it_leaves_64_bits(on: str) -> None:
    windows = Stream.read_json("t", Numbered).key_by("k").window(Tumbling("10s"))
    job = windows.trigger(RETRACTING, AccumulatingAndRetracting()).aggregate(n=Sum("n"))
    job = job.window(Tumbling("1m")).aggregate(total=Sum("n"), parts=Count()).write("o")
    rows = [reading(1) | {"n": 2**62}, reading(11) | {"n": 2**62}, reading(61) | {"n": 2**62}]
    found = run(job, TestStream(T0).advance_clock("1h").add(*rows).advance_watermark("10m"), on=on)
    assert [(row["total"], row["parts"]) for row in found.rows] == [(2**62, 1)]
    assert [each["error.code"] for each in found.dead] == (["RESULT_BEYOND"] if on == "operator" else [])


@BOTH
def test_a_time_that_a_step_sets_between_two_windows_is_taken_as_it_is(on: str) -> None:
    """The boundary: the start of a minute belongs to that minute, not to the one before."""
    job = first().aggregate(n=Count()).map(window_end="window_start").window(Tumbling("1m")).aggregate(parts=Count())
    stream = TestStream(T0).advance_clock("1h").add(*map(reading, (5, 55, 65))).advance_watermark("10m")
    rows = run(job.write("o"), stream, on=on).rows
    assert [(*bounds(row), row["parts"]) for row in rows] == [(0, 60, 2), (60, 120, 1)]


@BOTH
@pytest.mark.parametrize(
    ("windows", "expected"),
    [(CountWindows(2), [(9.999, 20, 2), (29.999, 40, 2)]), (DeltaWindows("n", 0.5), [(9.999, 29.999, 2)])],
)
def test_windows_of_counts_over_windows_span_the_instants_of_their_results(
    windows: Any, expected: list[tuple[float, float, int]], on: str
) -> None:
    """The result of [0 s, 10 s) belongs to 9.999 s."""
    job = first().aggregate(n=Count()).window(windows).aggregate(parts=Count()).write("o")
    rows = [reading(second) for second in (1, 11, 21, 22, 31, 32)]
    found = run(job, TestStream(T0).advance_clock("1h").add(*rows).advance_watermark("10m"), on=on).rows
    assert [(*bounds(row), row["parts"]) for row in found] == expected
