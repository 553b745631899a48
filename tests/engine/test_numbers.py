"""Numbers in the steps, functions and aggregates of a job: 64 bits throughout, and null for what cannot be computed.

What is expected is worked out in Python, whose integers have no bounds.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine import (
    Count,
    EachKey,
    Histogram,
    Instant,
    KeyCallback,
    Keyword,
    Max,
    Mean,
    Min,
    Process,
    Quantile,
    Record,
    Std,
    Stream,
    Sum,
    Tumbling,
    Variance,
)
from engine.spec.errors import NewnormalError
from engine.spec.expressions import computed, expression, values
from engine.testing import TestStream, run
from tests.engine.readings import T0

WHOLE = st.one_of(st.integers(-(2**63), 2**63 - 1), st.integers(-5, 5), st.sampled_from([2**31, 2**53 + 1, 2**62]))


class Row(Record):
    """Numbers and text of one record."""

    time: Instant
    k: Keyword
    n: int | None = None
    m: int = 0
    v: float = 0.0
    w: float = 0.0
    s: str = ""


def row(second: int, k: str = "a", **fields: Any) -> dict[str, Any]:
    return {"time": T0 + second * 1000, "k": k, **fields}


@settings(max_examples=200, deadline=None)
@given(WHOLE, WHOLE)
def test_arithmetic_of_whole_numbers_is_exact_or_null(a: int, b: int) -> None:
    """The boundary: results just within and just beyond 64 bits."""
    frame = pl.DataFrame({"a": [a, 1], "b": [b, 1]}, {"a": pl.Int64, "b": pl.Int64})
    for sign, of in (("+", operator.add), ("-", operator.sub), ("*", operator.mul)):
        exact = of(a, b)
        found = frame.select(computed(f"a {sign} b", frame).alias("x"))["x"]
        assert found.dtype == pl.Int64
        assert found.to_list() == [exact if -(2**63) <= exact < 2**63 else None, of(1, 1)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("cast(v as int) * 3", 6_000_000_000),
        ("case when v > 1 then 2000000000 else 0 end * 2", 4_000_000_000),
        ("2000000000 + 2000000000", 4_000_000_000),
        ("length(s) - 3", -1),
        ("length(s) - length('abc')", -1),
        ("length(s) * 2000000000", 4_000_000_000),
        ("strpos(s, 'z') - 1", -1),
        ("extract(hour from cast(time * 1000 as timestamp)) * 1000000000", 5_000_000_000),
        ("cast(v as smallint)", 2_000_000_000),
        ("cast(s as int)", None),  # a text that is no number
        ("cast(v * 1e300 as bigint)", None),
        ("v / w", None),
        ("n / m", None),
        ("w / w", None),
        ("ln(w)", None),
        ("sqrt(w - 1)", None),
        ("v * 1e308", None),
        ("0.0 / 0.0", None),
        ("n % m", None),
        ("power(n, 2)", 49.0),
        ("power(n, -1)", 1 / 7),
        ("case when v > 1 then 1.5 else 2 end", 1.5),
    ],
)
def test_what_an_expression_gives_depends_neither_on_32_bits_nor_on_other_records(text: str, expected: Any) -> None:
    one = {"time": 5 * 3_600_000, "k": "a", "n": 7, "m": 0, "v": 2e9, "w": 0.0, "s": "ab"}
    for rows in ([one], [one, one | {"s": "12", "m": 1, "w": 1.0, "v": 1.0}]):
        frame = pl.DataFrame(rows)
        found = frame.with_columns(computed(text, frame).alias("x"))["x"]
        assert found[0] == expected
        assert found.dtype in (pl.Int64, pl.Float64)


@pytest.mark.parametrize(
    "text",
    ["count(*)", "avg(v)", "v > avg(v)", "sum(v) over (partition by k)", "rank() over (order by v)", "max(v) - v",
     "lag(v) over (order by v)", "first(v)", "row_number() over (order by v)", "corr(v, w)",
     "unnest(string_to_array(s, ','))", "quantile_cont(v, 0.5)", "quantile_disc(v, 0.5)"],
)  # fmt: skip
def test_an_expression_over_several_records_is_refused_when_the_job_is_built(text: str) -> None:
    with pytest.raises(NewnormalError, match="EXPRESSION_INVALID"):
        expression(text)
    stream = Stream.read_json("t", Row)
    for made in (lambda: stream.map(x=text), lambda: stream.filter(text), lambda: stream.select("time", "k", x=text)):
        with pytest.raises(NewnormalError, match="EXPRESSION_INVALID"):
            made()


@pytest.mark.parametrize("on", ["reference", "operator"])
@pytest.mark.parametrize(
    ("numbers", "expected"),
    [
        ([2**62, 2**62 - 1], 2**63 - 1),  # the greatest sum of 64 bits
        ([2**62, 2**62], None),
        ([-(2**63), -1], None),
        ([2**53, 1], 2**53 + 1),
        ([2**63 - 1, 2**63 - 1, -(2**63)], 2**63 - 2),  # beyond 64 bits only on the way
    ],
)
def test_a_sum_is_exact_to_64_bits_and_no_result_beyond(numbers: list[int], expected: int | None, on: str) -> None:
    job = Stream.read_json("t", Row).key_by("k").window(Tumbling("10s")).aggregate(s=Sum("n"), most=Max("n")).write("o")
    for together in (True, False):
        stream = TestStream(T0).advance_clock("2h")
        rows = [row(i, n=n) for i, n in enumerate(numbers)]
        stream = stream.add(*rows) if together else stream
        for one in [] if together else rows:
            stream = stream.add(one)
        found = run(job, stream.advance_watermark("1h"), on=on).rows
        assert [(each["s"], each["most"]) for each in found] == ([] if expected is None else [(expected, max(numbers))])


@pytest.mark.parametrize("on", ["reference", "operator"])
def test_a_division_by_zero_is_no_value_in_any_aggregate_and_no_other_row(on: str) -> None:
    """The boundary: a NaN moved the bucket of a quantile into another key, and doubled a row."""
    aggregates = {
        "n": Count(),
        "sum": Sum("x"),
        "mean": Mean("x"),
        "std": Std("x"),
        "low": Min("x"),
        "high": Max("x"),
        "half": Quantile("x", 0.5),
        "bars": Histogram("x", (1.5, 2.5)),
    }
    windowed = Stream.read_json("t", Row).map(x="v / w").key_by("k").window(Tumbling("10s"))
    job = windowed.aggregate(**aggregates).write("o")
    rows = [row(i, v=v, w=w) for i, (v, w) in enumerate([(1.0, 1.0), (0.0, 0.0), (2.0, 1.0), (1.0, 0.0), (3.0, 1.0)])]
    for cut in (rows, rows[:2]):
        stream = TestStream(T0).advance_clock("2h").add(*cut).add(*rows[len(cut) :]).advance_watermark("1h")
        (found,) = run(job, stream, on=on).rows
        assert (found["n"], found["sum"], found["low"], found["high"]) == (5, 6.0, 1.0, 3.0)
        assert math.isclose(found["mean"], 2.0) and math.isclose(found["std"], 1.0)
        assert math.isclose(found["half"], 2.0, rel_tol=0.0101) and found["bars"] == [1, 1, 1]


class Shown(KeyCallback):
    """Writes what it was given, with its type."""

    def on_record(self, record: Any, state: Any, timer: Any) -> Iterable[Any]:
        yield {"s": f"{type(record['n']).__name__} {record['n']}"}


@pytest.mark.parametrize("on", ["reference", "operator"])
@pytest.mark.parametrize("together", [True, False])
def test_a_callback_gets_the_type_of_the_field_whatever_comes_with_it(together: bool, on: str) -> None:
    job = Stream.read_json("t", Row).key_by("k").process(Process(EachKey(Shown(), ("n",)))).write("o", Row)
    rows = [row(1, "a", n=2**53 + 1), row(2, "b", n=None), row(3, "c", n=1)]
    stream = TestStream(T0).advance_clock("2h")
    stream = stream.add(*rows) if together else stream.add(rows[0]).add(rows[1]).add(rows[2])
    said = {r["k"]: r["s"] for r in run(job, stream.advance_watermark("1h"), on=on).rows}
    assert said == {"a": f"int {2**53 + 1}", "b": "NoneType None", "c": "int 1"}


def test_a_function_of_ones_own_gives_numbers_of_64_bits_and_no_infinity() -> None:
    job = Stream.read_json("t", Row).map(narrow).key_by("k").window(Tumbling("10s"))
    job = job.aggregate(s=Sum("n"), v=Sum("v")).write("o")
    stream = TestStream(T0).advance_clock("2h").add(*(row(i, n=2_000_000_000, v=1.0) for i in range(3)))
    (found,) = run(job, stream.advance_watermark("1h")).rows
    assert found["s"] == 6_000_000_000 and found.get("v") is None


def narrow(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.with_columns(pl.col("n").cast(pl.Int32), pl.col("v") / 0)


@pytest.mark.parametrize("on", ["reference", "operator"])
def test_the_deviation_of_one_value_is_0_or_null_as_the_job_says(on: str) -> None:
    windows = Stream.read_json("t", Row).key_by("k").window(Tumbling("10s"))
    job = windows.aggregate(zero=Std("v"), none=Std("v", of_one=None), var=Variance("v", of_one=None)).write("o")
    (found,) = run(job, TestStream(T0).advance_clock("2h").add(row(1, v=5.0)).advance_watermark("1h"), on=on).rows
    assert (found["zero"], found.get("none"), found.get("var")) == (0.0, None, None)


@pytest.mark.parametrize(
    ("text", "at_fault", "expected"),
    [
        ("substr(s, 1, length(s) - 3)", {"s": "ab"}, None),  # the first -1 letters
        ("n // m", {"n": -(2**63), "m": -1}, None),  # 2^63
        ("div(n, m)", {"n": -(2**63), "m": -1}, None),
        ("abs(n)", {"n": -(2**63)}, None),
        ("strftime(cast(n as timestamp), '%Y')", {"n": 2**63 - 1}, None),  # the year 292,277
        ("sqrt(v) > 3", {"v": -1.0}, None),
        ("ln(v) < 0", {"v": 0.0}, None),
        ("coalesce(sqrt(v), 0)", {"v": -1.0}, 0.0),
        ("cast(sqrt(v) as varchar)", {"v": -1.0}, None),
        ("v * 10 > 5", {"v": 1e308}, None),
        ("v % w > 1", {"w": 0.0}, None),
    ],
)
def test_one_record_that_cannot_be_computed_is_null_and_no_other_one(text: str, at_fault: Any, expected: Any) -> None:
    well = {"n": 9, "m": 2, "v": 16.0, "w": 3.0, "s": "abcdef"}
    alone = values(text, pl.DataFrame([well]))[0]
    assert alone is not None
    for rows in ([well | at_fault], [well, well | at_fault, well], [well | at_fault, well, well]):
        found = values(text, pl.DataFrame(rows)).to_list()
        assert found == [expected if row != well else alone for row in rows]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (" or ".join(f"s = '{n}'" for n in range(200)), True),
        (" + ".join(["n"] * 100), 900),
        ("case " + " ".join(f"when n = {n} then {n * 2}" for n in range(100)) + " end", 18),
        (" || ".join(["s"] * 60), "7" * 60),
    ],
    ids=["conditions", "terms", "branches", "parts of a text"],
)
def test_a_long_expression_is_computed(text: str, expected: Any) -> None:
    assert values(text, pl.DataFrame({"n": [9], "s": ["7"]}))[0] == expected


def test_a_column_may_have_the_name_of_a_function_and_a_list_of_one_record_may_be_turned() -> None:
    frame = pl.DataFrame({"Len": [3], "l": [[1, 2]]})
    assert values("Len + 1", frame)[0] == 4
    assert values("array_reverse(l)", frame)[0].to_list() == [2, 1]
