"""Records without a value are skipped: whatever the batches, the results of a window are those of its values.

What is expected is worked out here, from the values alone, by Python's `statistics`.
"""

from __future__ import annotations

import math
import statistics
from collections import Counter
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from engine.aggregates import (
    AnyAggregate,
    Constant,
    Count,
    Distinct,
    First,
    Histogram,
    Last,
    Max,
    Mean,
    Min,
    Quantile,
    Rate,
    Std,
    Sum,
    TopK,
    Variance,
)
from engine.formats.columnar import ColumnarDecoder
from engine.formats.dead_letters import DeadLetter
from engine.spec.job import Job
from engine.spec.output import Output
from engine.spec.record import Finite, Keyword, Record
from engine.spec.source import Source, TimeBounds
from engine.stream import Stream
from engine.testing import TestStream, run
from tests.engine.ways import WAYS, supported, windowed

T0 = 1_700_000_000_000
LENGTH = 10_000


class Reading(Record):
    """A value that may be missing."""

    identity = ("key", "time")

    key: Keyword
    time: int
    value: Finite | None = None
    kind: Keyword | None = None


class Summary(Record):
    """All that can be said of a window."""

    identity = ("key", "window_start", "window_end")

    key: Keyword
    window_start: int
    window_end: int
    revision: int = 0
    pane: int = 0
    timing: Keyword = "on_time"
    count: int | None = None
    sum: Finite | None = None
    mean: Finite | None = None
    std: Finite | None = None
    variance: Finite | None = None
    min: Finite | None = None
    max: Finite | None = None
    first: Finite | None = None
    last: Finite | None = None
    kind: Keyword | None = None
    distinct: int | None = None
    top: dict[str, int] | None = None
    histogram: list[int] | None = None
    p50: Finite | None = None
    rate: Finite | None = None


AGGREGATES: dict[str, AnyAggregate] = {
    "count": Count(),
    "sum": Sum("value"),
    "mean": Mean("value"),
    "std": Std("value"),
    "variance": Variance("value"),
    "min": Min("value"),
    "max": Max("value"),
    "first": First("value"),
    "last": Last("value"),
    "kind": Constant("kind"),
    "distinct": Distinct("value"),
    "top": TopK("value", 2),
    "histogram": Histogram("value", (0.0, 2.0)),
    "p50": Quantile("value", 0.5),
    "rate": Rate("value"),
}
Rows = list[dict[str, Any]]


def job(way: str) -> Job:
    source = Source({"t": ColumnarDecoder(Reading)}, Reading, bounds=TimeBounds(max_ahead="3650d"))
    stream = windowed(Stream.read(source).key_by("key"), way, AGGREGATES, "1h")
    out, dead = Output("out", Summary, partitions=1), Output("dead", DeadLetter, "json")
    return stream.write("job", out, dead, Output("late", Reading))


def oracle(rows: Rows) -> dict[str, Any]:
    """The results of one window, from the definitions."""
    timed = sorted((r["time"], r["value"]) for r in rows if r["value"] is not None)
    values = [value for _, value in timed]
    results: dict[str, Any] = dict.fromkeys(AGGREGATES) | {"count": len(rows)}
    kinds = {r["kind"] for r in rows} - {None}
    results["kind"] = kinds.pop() if kinds else None
    if not values:
        return results
    several = len(values) > 1
    counts = sorted(Counter(map(str, values)).items(), key=lambda item: (-item[1], item[0]))
    steps = [(v - u, t - s) for (s, u), (t, v) in pairwise(timed) if v >= u]  # no step where the counter began anew
    elapsed = sum(time for _, time in steps)
    return results | {
        "sum": math.fsum(values),
        "mean": statistics.fmean(values),
        "std": statistics.stdev(values) if several else 0.0,
        "variance": statistics.variance(values) if several else 0.0,
        "min": min(values),
        "max": max(values),
        "first": min(v for t, v in timed if t == timed[0][0]),
        "last": max(v for t, v in timed if t == timed[-1][0]),
        "distinct": len(set(values)),
        "top": dict(counts[:2]),
        "histogram": [sum(v < 0 for v in values), sum(0 <= v < 2 for v in values), sum(v >= 2 for v in values)],
        "p50": sorted(values)[math.ceil(len(values) / 2) - 1],
        "rate": sum(up for up, _ in steps) * 1000 / elapsed if elapsed else None,
    }


def assert_is(got: dict[str, Any], values: dict[str, Any], way: str) -> None:
    expected = {name: values[name] for name in supported(way, AGGREGATES)}
    for name, value in expected.items():
        mine = dict((e["key"], e["value"]) if isinstance(e, dict) else e for e in got["top"] or ()) or None
        mine = mine if name == "top" else got.get(name)
        close = {"p50": 0.011}.get(name, 1e-9)
        if isinstance(value, float):
            assert mine == pytest.approx(value, rel=close, abs=1e-9), (name, got, expected)
        else:
            assert mine == value, (name, got, expected)


def reading(key: str, time: int, value: float | None, kind: str | None = "gauge") -> dict[str, Any]:
    return {"key": key, "time": T0 + time, "value": value, "kind": kind}


def first_window(name: str, batches: list[Rows], on: str, passed: int = 99) -> dict[str, dict[str, Any]]:
    """The last result of each key's first whole window; the watermark passes it ahead of the batch ``passed``."""
    stream = TestStream(T0)
    for number, batch in enumerate(batches):
        stream = stream.advance_watermark(LENGTH) if number == passed else stream
        stream = stream.add(*batch)
    rows = run(job(name), stream.advance_watermark("3h"), on).rows
    if name in ("slices", "several slices", "a trigger"):
        rows = [row for row in rows if row["window_start"] == T0]
    return {row["key"]: row for row in sorted(rows, key=lambda row: row["revision"])}


@pytest.mark.parametrize("on", ["operator", "reference"])
@pytest.mark.parametrize("name", WAYS)
@pytest.mark.parametrize("batches", [1, 2, 3])
def test_a_missing_value_has_no_weight_in_however_many_batches(name: str, batches: int, on: str) -> None:
    rows = [reading("a", 1000, 1.0), reading("a", 2000, None), reading("a", 3000, 4.0)]
    parts = {1: [rows], 2: [rows[:2], rows[2:]], 3: [[row] for row in rows]}[batches]
    got = first_window(name, parts, on)["a"]
    assert (got["count"], got["mean"], got["sum"], got["variance"]) == (3, 2.5, 5.0, 4.5)
    assert (got["first"], got["last"], got["min"], got["max"]) == (1.0, 4.0, 1.0, 4.0)


@pytest.mark.parametrize("on", ["operator", "reference"])
@pytest.mark.parametrize("name", WAYS)
@pytest.mark.parametrize("batches", [1, 2])
def test_of_nothing_but_missing_values_there_is_a_count_and_no_other_result(name: str, batches: int, on: str) -> None:
    rows = [reading("a", 1000, None, None), reading("a", 2000, None, None)]
    got = first_window(name, [rows] if batches == 1 else [[row] for row in rows], on)["a"]
    assert_is(got, dict.fromkeys(AGGREGATES) | {"count": 2}, name)


@pytest.mark.parametrize("on", ["operator", "reference"])
@pytest.mark.parametrize("late", [None, 5.0], ids=["late without a value", "late with a value"])
@pytest.mark.parametrize(("at", "alone"), [(3_000, [2]), (9_000, [2, 4, 6, 8])])
def test_of_the_windows_that_a_late_record_revises_some_have_a_value_and_some_have_none(
    at: int, alone: list[int], late: float | None, on: str
) -> None:
    """Windows of 10 s, every 2 s: the late record at 1 s is in those that end at 2, 4, 6, 8 and 10 s.

    A value lies at ``at``: the windows ``alone`` end before it, and hold no value but that of the late record.
    """
    first, value, missed = reading("a", 0, None), reading("a", at, 3.0), reading("a", 1_000, late)
    stream = TestStream(T0).add(first, value).advance_watermark("30s").add(missed).advance_watermark("3h")
    found = run(job("several slices"), stream, on).rows
    revised = {(row["window_end"] - T0) // 1000: row for row in found if row["revision"] == 1}
    for end in (2, 4, 6, 8, 10):
        row, values = revised[end], [*([] if late is None else [late]), *([] if end in alone else [3.0])]
        assert row["count"] == (2 if end in alone else 3)
        assert (row["first"], row["last"]) == ((values[0], values[-1]) if values else (None, None))
        assert row["sum"] == (sum(values) if values else None)
        assert_is(row, oracle([first, missed] if end in alone else [first, missed, value]), "several slices")


@pytest.mark.parametrize("name", WAYS)
def test_results_that_are_missing_can_be_asked_about_further_on(name: str) -> None:
    source = Source({"t": ColumnarDecoder(Reading)}, Reading, bounds=TimeBounds(max_ahead="3650d"))
    stream = windowed(Stream.read(source).key_by("key"), name, AGGREGATES).filter(
        "p50 IS NULL AND distinct IS NULL AND histogram IS NULL"
    )
    asking = stream.write("job", Output("out", Summary, partitions=1), Output("dead", DeadLetter, "json"))
    rows = run(asking, TestStream(T0).add(reading("a", 1000, None)).advance_watermark("3h")).rows
    assert len(rows) == (5 if name == "several slices" else 1)
    assert {row["count"] for row in rows} == {1}


@st.composite
def batches(draw: st.DrawFn) -> tuple[list[Rows], int]:
    """Records of one window of some keys in any order, cut anywhere, and where the watermark passes the window."""
    values = st.one_of(st.none(), st.integers(-3, 3).map(float), st.integers(-4000, 4000).map(lambda v: v / 4))
    row = st.tuples(st.sampled_from("ab"), st.integers(0, 9), values, st.sampled_from(["gauge", None]))
    rows = [reading(k, t * 1000, v, d) for k, t, v, d in draw(st.lists(row, min_size=1, max_size=14))]
    cuts = sorted(draw(st.sets(st.integers(1, len(rows)), max_size=4)))
    parts = [rows[a:b] for a, b in pairwise([0, *cuts, len(rows)]) if a < b]
    return parts, draw(st.integers(1, 8))


@pytest.mark.parametrize("on", ["operator", "reference"])
@pytest.mark.parametrize("name", WAYS)
@settings(
    deadline=None,
    max_examples=12,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    suppress_health_check=[HealthCheck.too_slow],
)
@given(drawn=batches())
def test_cutting_batches_anywhere_changes_no_result(name: str, on: str, drawn: tuple[list[Rows], int]) -> None:
    parts, passed = drawn
    rows = [row for part in parts for row in part]
    late = 99 if name == "counts" else passed
    got = first_window(name, parts, on, late)
    assert got.keys() == {row["key"] for row in rows}
    for key, row in got.items():
        assert_is(row, oracle([r for r in rows if r["key"] == key]), name)
