"""Aggregates give what their plain Python says, however the records are cut and in whatever order partials merge."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import reduce
from itertools import pairwise, product
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.aggregates import (
    Aggregate,
    AnyAggregate,
    Constant,
    Count,
    CustomAggregate,
    Distinct,
    First,
    Histogram,
    Last,
    Max,
    MaxBy,
    Mean,
    Min,
    MinBy,
    Quantile,
    Rate,
    RowAggregate,
    Std,
    Sum,
    TopK,
    Variance,
)
from engine.aggregates.aggregate import COUNT
from engine.aggregates.distinct import STANDARD_ERROR
from engine.columns.packing import grouped
from engine.formats.columnar import ColumnarDecoder
from engine.formats.dead_letters import DeadLetter
from engine.reference import Arrival, Watermark, interpret
from engine.reference.aggregates import aggregated
from engine.spec.errors import NewnormalError
from engine.spec.job import Job
from engine.spec.output import Output
from engine.spec.record import Finite, Keyword, Record
from engine.spec.source import Source
from engine.stream import Stream
from engine.vectorized.beyond import BEYOND
from engine.vectorized.windows.folds import PARTIAL, SUMS, Folds
from engine.windows import Sliding
from pipelines.contracts.records import Telemetry

T0 = 1_700_000_000_000
KEY = ["entity"]
GEOMETRIC = CustomAggregate(
    {"geo.logs": (pl.col("value").abs() + 1).log().sum(), "geo.n": pl.len().cast(pl.Int64)},
    {"geo.logs": pl.col("geo.logs").sum(), "geo.n": pl.col("geo.n").sum()},
    (pl.col("geo.logs") / pl.col("geo.n")).exp(),
    lambda records: math.exp(math.fsum(math.log(abs(float(str(r["value"]))) + 1) for r in records) / len(records)),
)
EXACT: dict[str, AnyAggregate] = {
    "count": Count(),
    "min": Min("value"),
    "max": Max("value"),
    "time_of_min": MinBy("time", by="value"),
    "time_of_max": MaxBy("time", by="value"),
    "first": First("value"),
    "last": Last("value"),
    "constant": Constant("site"),
    "top": TopK("metric", 2),
    "top_values": TopK("value", 100),
    "histogram": Histogram("value", (-1.0, 0.0, 2.5)),
    "finer": Histogram("value", (0.0, 1.0)),
}
NEARLY: dict[str, AnyAggregate] = {
    "sum": Sum("value"),
    "mean": Mean("value"),
    "variance": Variance("value"),
    "std": Std("value"),
    "geometric": GEOMETRIC,
}
EVERY = EXACT | NEARLY

Rows = list[dict[str, Any]]


def frame(rows: Rows) -> pl.DataFrame:
    types = {
        "entity": pl.Categorical,
        "metric": pl.Categorical,
        "time": pl.Int64,
        "value": pl.Float64,
        "site": pl.String,
    }
    return pl.DataFrame(rows, schema=types).with_columns(pl.lit(0, pl.Int64).alias(PARTIAL))


def merged(parts: list[pl.DataFrame], aggregate: AnyAggregate) -> pl.DataFrame:
    """The result of lifting parts each alone and merging their partials, one after the other, in the order given."""
    tables = [Folds({"it": aggregate}).lift(part, KEY) for part in parts]
    if isinstance(aggregate, Aggregate):
        both = Count().merge() | aggregate.merge()
        rows = [t[SUMS].drop(PARTIAL) for t in tables]
        whole = reduce(lambda a, b: grouped(pl.concat([a, b]), KEY, both), rows)
        return whole.select(*KEY, aggregate.finish().alias("result"))
    assert isinstance(aggregate, RowAggregate)
    rows = [t[aggregate.table].drop(PARTIAL) for t in tables]
    whole = reduce(lambda a, b: aggregate.merge(pl.concat([a, b]), KEY), rows)
    return aggregate.finish(whole, KEY, {"result": aggregate})


def results(parts: list[pl.DataFrame], aggregate: AnyAggregate) -> dict[str, Any]:
    rows = merged(parts, aggregate).with_columns(pl.col("entity").cast(pl.String))
    assert rows["entity"].n_unique() == rows.height, "one row a key"
    return dict(rows.iter_rows())


@st.composite
def cut_records(draw: st.DrawFn) -> tuple[Rows, list[Rows]]:
    """Some records, and the same ones in another order, cut into parts."""
    values = st.one_of(st.integers(-3, 3).map(float), st.floats(-1e6, 1e6))
    row = st.tuples(st.sampled_from("ab"), st.sampled_from("mno"), st.integers(0, 20), values)
    rows = [
        {"time": T0 + t, "entity": e, "metric": m, "value": v + 0.0, "site": f"of {e}"}
        for e, m, t, v in draw(st.lists(row, min_size=1, max_size=30))
    ]
    mixed = draw(st.permutations(rows))
    cuts = sorted(draw(st.sets(st.integers(1, len(rows)), max_size=3)))
    return rows, [mixed[a:b] for a, b in pairwise([0, *cuts, len(rows)]) if a < b]


@pytest.mark.parametrize("name", EVERY)
@settings(deadline=None, max_examples=20)
@given(drawn=cut_records())
def test_merging_in_any_order_and_partition_is_the_reference(name: str, drawn: tuple[Rows, list[Rows]]) -> None:
    rows, parts = drawn
    aggregate = EVERY[name]
    got = results([frame(part) for part in parts], aggregate)
    assert got.keys() == {r["entity"] for r in rows}
    for entity, value in got.items():
        mine = sorted((r for r in rows if r["entity"] == entity), key=lambda r: (r["time"], r["value"]))
        expected: Any = aggregated(aggregate, mine)  # type: ignore[call-arg]
        if name in EXACT:
            assert value == expected
        else:
            scale = max(abs(r["value"]) for r in mine)
            scale = scale**2 if name == "variance" else scale
            assert math.isclose(value, expected, rel_tol=1e-9, abs_tol=1e-6 * scale if name == "std" else 1e-9 * scale)


WHOLE = st.one_of(st.integers(-3, 3), st.sampled_from([-(2**63), 2**63 - 1, 2**62]), st.none())


@pytest.mark.parametrize("name", [*(name for name, each in EXACT.items() if isinstance(each, Aggregate)), "sum"])
@settings(deadline=None, max_examples=20)
@given(values=st.lists(WHOLE, min_size=1, max_size=5))
def test_a_result_of_whole_numbers_is_exact_or_said_to_be_beyond_64_bits(name: str, values: list[int | None]) -> None:
    records = [{"time": T0 + at, "entity": "a", "site": "s", "value": each} for at, each in enumerate(values)]
    rows = pl.DataFrame(records, schema_overrides={"value": pl.Int64}).with_columns(pl.lit(0).alias(PARTIAL))
    folds = Folds({"it": EVERY[name]})
    (row,) = folds.lift(rows, KEY)[SUMS].select(folds.finished()).to_dicts()
    try:
        wanted = aggregated(EVERY[name], records)
        beyond = isinstance(wanted, int) and not -(2**63) <= wanted < 2**63
    except OverflowError:
        beyond = True
    assert (row.get(BEYOND) is not None) == beyond
    assert beyond or row["it"] == wanted


def test_what_an_older_version_kept_of_an_open_window_still_counts() -> None:
    """It kept the number of records, not that of values, under a name that a key may have, and no times."""
    folds = Folds({"mean": Mean("value"), "std": Std("value"), "first": First("value"), "last": Last("value")})
    rows = [{"time": T0 + t, "entity": "a", "metric": "m", "value": v} for t, v in ((1, 1.0), (2, 3.0), (3, 8.0))]
    older = (
        folds.lift(frame(rows[:2]), KEY)[SUMS]
        .drop("value.n", "value.first_time", "value.last_time")
        .rename({COUNT: "n"})
    )
    both = pl.concat([older, folds.lift(frame(rows[2:]), KEY)[SUMS]], how="diagonal_relaxed")
    for sums, expected in ((older, (2.0, math.sqrt(2), 1.0, 3.0)), (both, (4.0, math.sqrt(13), 1.0, 8.0))):
        got = folds.merge(SUMS, sums, [*KEY, PARTIAL]).select(folds.finished()).drop(BEYOND).row(0)
        assert got == pytest.approx(expected)
        if sums is older:
            assert folds.complete(sums, [*KEY, PARTIAL]).select(folds.finished()).drop(BEYOND).row(0) == pytest.approx(
                expected
            )


SIZES = [1, 2, 10, 100, 1000, 30_000, 300_000]


@pytest.mark.parametrize(("kind", "n"), [*product(["integers", "floats"], SIZES), *product(["texts"], SIZES[:-1])])
def test_distinct_values_are_counted_to_four_standard_errors(kind: str, n: int) -> None:
    numbers = np.random.default_rng(n).permutation(n)
    values = {"integers": numbers, "floats": numbers / 7, "texts": [f"user-{i}" for i in numbers]}[kind]
    rows = pl.DataFrame({"time": T0, "entity": "a", "user": values, PARTIAL: 0})
    aggregate = Distinct("user")
    parts = [rows[: n // 2 + 1], rows[n // 3 :]]
    tables = [Folds({"it": aggregate}).lift(part, KEY)[aggregate.table].drop(PARTIAL) for part in parts]
    whole = aggregate.merge(pl.concat(tables), KEY)
    estimate = aggregate.finish(whole, KEY, {"users": aggregate})["users"].item()
    assert abs(estimate - n) <= max(1, 4 * STANDARD_ERROR * n)
    assert whole.height <= 4096


def test_the_error_of_distinct_is_as_stated_over_many_keys() -> None:
    keys, n = 100, 2000
    users = np.random.default_rng(5).permuted(np.tile(np.arange(n), (keys, 1)), axis=1) + np.arange(keys)[:, None] * n
    rows = pl.DataFrame({"entity": np.repeat(np.arange(keys), n), "user": users.ravel(), "time": T0, PARTIAL: 0})
    aggregate = Distinct("user")
    table = Folds({"it": aggregate}).lift(rows, KEY)[aggregate.table]
    errors = aggregate.finish(table, KEY, {"users": aggregate})["users"].to_numpy() / n - 1
    assert math.sqrt(float(np.mean(errors**2))) < 1.3 * STANDARD_ERROR
    assert abs(float(errors.mean())) < 4 * STANDARD_ERROR / math.sqrt(keys)


def test_a_hash_is_the_same_for_ever() -> None:
    """What lies in the state of a job must mean the same after an upgrade."""
    rows = pl.DataFrame({"entity": "a", "user": ["x", "y", "z"], "time": T0, PARTIAL: 0})
    registers = Folds({"it": Distinct("user")}).lift(rows, KEY)["distinct:user"].sort("__register")
    assert registers.select("__register", "__rank").rows() == [(1918, 1), (1984, 1), (3761, 1)]


@settings(deadline=None, max_examples=30)
@given(items=st.lists(st.integers(0, 12), min_size=1, max_size=120), size=st.integers(1, 40))
def test_top_k_beyond_its_capacity_is_as_wrong_as_stated_and_no_more(items: list[int], size: int) -> None:
    aggregate = TopK("item", 4, capacity=4)
    rows = pl.DataFrame({"entity": "a", "item": items, "time": T0, PARTIAL: 0})
    parts = [rows[list(part)] for part in (range(i, min(i + size, len(items))) for i in range(0, len(items), size))]
    tables = [Folds({"it": aggregate}).lift(part, KEY)[aggregate.table].drop(PARTIAL) for part in parts]
    whole = reduce(lambda a, b: aggregate.merge(pl.concat([a, b]), KEY), tables)
    assert whole.height <= 4
    kept = dict(whole.select("__item", COUNT).iter_rows())
    for item in set(items):
        assert items.count(item) - len(items) / 5 <= kept.get(item, 0) <= items.count(item)


def test_a_key_with_few_items_keeps_its_counts_beside_one_with_more_than_may_be_kept() -> None:
    aggregate = TopK("item", 2, capacity=2)
    rows = pl.DataFrame({"entity": [*"aaaaaa", *"bbb"], "item": [1, 1, 1, 2, 2, 3, 7, 7, 8], "time": T0, PARTIAL: 0})
    table = Folds({"it": aggregate}).lift(rows, KEY)[aggregate.table].drop(PARTIAL)
    assert sorted(table.select("entity", "__item", COUNT).rows()) == [
        ("a", 1, 2),
        ("a", 2, 1),
        ("b", 7, 2),
        ("b", 8, 1),
    ]


class Panes(Record):
    """Results of all kinds in a columnar topic."""

    identity = ("entity", "metric", "window_end")

    entity: Keyword
    metric: Keyword
    window_start: int
    window_end: int
    revision: int
    sum: Finite | None = None
    variance: Finite | None = None
    first: Finite | None = None
    users: int | None = None
    top: dict[str, int] | None = None
    histogram: list[int] | None = None
    geometric: Finite | None = None
    p50: Finite | None = None


def everything() -> Job:
    stream = Stream.read(Source({"t": ColumnarDecoder(Telemetry)}, Telemetry)).key_by("entity", "metric")
    stream = stream.window(Sliding("20s", every="10s"), "1m").aggregate(
        sum=Sum("value"),
        variance=Variance("value"),
        first=First("value"),
        users=Distinct("value"),
        top=TopK("value", 3),
        histogram=Histogram("value", (0.0, 5.0)),
        geometric=GEOMETRIC,
        p50=Quantile("value", 0.5),
    )
    return stream.write("job", Output("out", Panes), Output("dead", DeadLetter, "json"), Output("late", Telemetry))


@pytest.mark.parametrize("shards", [1, 2])
def test_all_kinds_of_results_are_those_of_the_reference_in_sliding_and_revised_windows(
    driven: Callable[..., Any], shards: int
) -> None:
    rng = np.random.default_rng(3)
    arrivals = [
        Arrival("t", 0, T0 + 86_400_000, {"time": T0 + int(t), "entity": e, "metric": "m", "value": float(v)} | GAUGE)
        for e, t, v in zip(
            rng.choice(["a", "b"], 60), rng.integers(0, 50_000, 60), rng.integers(-3, 9, 60), strict=True
        )
    ]
    end = Watermark("t", 0, T0 + 86_400_000, T0 + 60_000)
    input = [arrivals[:30], [*arrivals[30:45], end], arrivals[45:]]
    run, outcome = driven(everything(), shards).run(input), interpret(everything(), input)

    def by_name(rows: Rows) -> dict[tuple[Any, ...], dict[str, Any]]:
        return {(r["entity"], r["window_end"], r["revision"]): r for r in rows}

    got, expected = by_name(run.rows), by_name(outcome.rows)
    assert got.keys() == expected.keys()
    assert max(revision for _, _, revision in got) >= 1
    for name, row in got.items():
        for column in ("users", "first", "histogram"):
            assert row[column] == expected[name][column], column
        assert row["top"] == [(e["key"], e["value"]) for e in expected[name]["top"]]
        for column in ("sum", "variance", "geometric"):
            assert row[column] == pytest.approx(expected[name][column], rel=1e-9, abs=1e-9)


GAUGE = {"kind": "gauge"}


def test_a_second_rate_is_refused() -> None:
    stream = Stream.read(Source({"t": ColumnarDecoder(Telemetry)}, Telemetry)).key_by("entity")
    with pytest.raises(NewnormalError, match="RATE_TWICE: 2 rates: a, b"):
        stream.window(Sliding("20s", every="10s")).aggregate(a=Rate("value"), b=Rate("value", lookback="1m"))


def test_two_meanings_of_one_partial_column_are_refused() -> None:
    stream = Stream.read(Source({"t": ColumnarDecoder(Telemetry)}, Telemetry)).key_by("entity")
    mine = CustomAggregate({"value.n": pl.col("value").max()}, {"value.n": pl.col("value.n").max()}, pl.col("value.n"))
    with pytest.raises(NewnormalError, match="PARTIAL_CLASH"):
        stream.window(Sliding("20s", every="10s")).aggregate(mean=Mean("value"), mine=mine)


@pytest.mark.parametrize(
    "wrong",
    [lambda: TopK("v", 0), lambda: TopK("v", 9, 8), lambda: Histogram("v", (1.0, 1.0)), lambda: Quantile("v", 1.5)],
)
def test_a_wrong_parameter_is_refused(wrong: Callable[[], object]) -> None:
    with pytest.raises(NewnormalError, match="AGGREGATE_INVALID"):
        wrong()


@pytest.mark.parametrize(("q", "ranks"), [(0.0, (1, 1)), (1.0, (5, 3)), (0.4, (2, 2)), (0.41, (3, 2))])
def test_a_quantile_is_the_value_of_its_rank_for_each_key(q: float, ranks: tuple[int, int]) -> None:
    values = {"a": [10.0, 20.0, 30.0, 40.0, 50.0], "b": [1000.0, 2000.0, 3000.0]}
    rows = [
        {"time": T0, "entity": entity, "metric": "m", "value": value} for entity, own in values.items() for value in own
    ]
    found = results([frame(rows)], Quantile("value", q))
    assert found == pytest.approx({e: own[r - 1] for (e, own), r in zip(values.items(), ranks, strict=True)}, rel=0.01)
