"""A job that is stopped, changed in a way that its state follows, and started again: its results are right."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine import (
    AfterAny,
    AfterCount,
    AfterProcessingTime,
    AfterWatermark,
    Count,
    CountWindows,
    CustomAggregate,
    Distinct,
    Max,
    Quantile,
    Session,
    Sliding,
    Stream,
    Sum,
    Tumbling,
)
from engine.aggregates.aggregate import COUNT
from engine.spec.job import Job
from engine.state.segments import pack, unpack
from engine.testing import Batch, TestStream
from engine.testing.driven import Driven
from engine.testing.encoding import fed_columns
from engine.testing.written import Written
from engine.triggers import Trigger
from engine.windows import Window
from tests.engine.readings import T0, Value

WINDOWS: dict[str, Window] = {
    "tumbling": Tumbling("10s"),
    "sliding": Sliding("30s", every="10s"),
    "sliding of many": Sliding("40s", every="1s"),
    "sessions": Session("7s"),
}
TRIGGERS: dict[str, Trigger] = {
    "counts": AfterWatermark(early=AfterCount(2)),
    "a clock": AfterWatermark(early=AfterProcessingTime("5s")),
    "one of two": AfterWatermark(early=AfterAny(AfterCount(3), AfterProcessingTime("20s", aligned=False))),
}
AGGREGATES = {"n": Count(), "total": Sum("v"), "most": Max("v"), "half": Quantile("v", 0.5), "kinds": Distinct("v")}


def job(window: Window, lateness: str, trigger: Trigger | None, **aggregates: Any) -> Job:
    windows = Stream.read_json("t", Value, out_of_orderness="5s").key_by("k").window(window, lateness)
    windows = windows.trigger(trigger) if trigger else windows
    return windows.aggregate(**(aggregates or AGGREGATES)).write("o")


def goes_on(before: Job, after: Job, batches: Sequence[Batch], cut: int) -> tuple[list[Written], list[Written]]:
    """What a job writes up to a micro-batch, and what another one writes with its state from there on."""
    first = Driven(fed_columns(before))
    first.run([batch.entries for batch in batches[:cut]])
    second = Driven(fed_columns(after), states=first.states, offset=first.offset)
    second.run([batch.entries for batch in batches[cut:]])
    return first.written, second.written


def rows_of(*written: Sequence[Written]) -> list[dict[str, Any]]:
    return [row for some in written for each in some for row in each.rows]


def but_early(rows: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    """All results but the early ones, whatever came before them."""
    kept = [row for row in rows if row["timing"] != "early"]
    return sorted(
        (str(row.get("k")), row["window_start"], row["window_end"], row["revision"], row["timing"],
         *(str(row.get(name)) for name in AGGREGATES))
        for row in kept
    )  # fmt: skip


batches_of = st.lists(
    st.lists(
        st.tuples(st.integers(0, 90), st.sampled_from(["a", "b", None]), st.one_of(st.none(), st.integers(-9, 9))),
        max_size=5,
    ),
    min_size=2,
    max_size=8,
)


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("trigger", TRIGGERS)
@settings(max_examples=5, deadline=None)
@given(records=batches_of, lateness=st.sampled_from(["0s", "15s", "10m"]), data=st.data())
def test_a_trigger_that_is_added_changes_no_result_but_the_early_ones(
    window: str,
    trigger: str,
    records: list[list[tuple[int, str | None, int | None]]],
    lateness: str,
    data: st.DataObject,
) -> None:
    """The boundary: windows that have had results and may be revised, and those that have had none."""
    stream = TestStream(T0).advance_clock("2h")
    for batch in records:
        stream = stream.add(*({"time": T0 + s * 1000, "k": k, "v": v} for s, k, v in batch)) if batch else stream
        stream = stream.advance_clock("3s")
    stream = stream.advance_watermark("3h")
    cut = data.draw(st.integers(1, len(stream.batches) - 1))
    plain, early = (job(WINDOWS[window], lateness, when) for when in (None, TRIGGERS[trigger]))
    whole, _ = goes_on(plain, plain, stream.batches, len(stream.batches))
    first, then = goes_on(plain, early, stream.batches, cut)
    assert but_early(rows_of(first, then)) == but_early(rows_of(whole))
    assert [row for batch in (*first, *then) for row in batch.late] == [row for batch in whole for row in batch.late]
    panes = defaultdict(list)
    for row in rows_of(first, then):
        if window != "sessions":  # which merge
            panes[row.get("k"), row["window_start"], row["window_end"]].append(row["pane"])
    assert all(numbers == list(range(len(numbers))) for numbers in panes.values())


def test_early_results_hold_what_came_before_the_trigger_was_added() -> None:
    stream = TestStream(T0).advance_clock("2h")
    for second, v in ((1, 5), (2, 7), (3, 1), (4, 2)):
        stream = stream.add({"time": T0 + second * 1000, "k": "a", "v": v})
    plain, early = job(Tumbling("10s"), "0s", None), job(Tumbling("10s"), "0s", AfterWatermark(early=AfterCount(3)))
    first, then = goes_on(plain, early, stream.batches, 3)
    assert not rows_of(first)
    assert [(row["n"], row["total"], row["timing"]) for row in rows_of(then)] == [(3, 13, "early")]


@pytest.mark.parametrize("window", WINDOWS.values())
def test_an_aggregate_that_is_added_has_the_records_from_then_on_and_leaves_the_others_as_they_are(
    window: Window,
) -> None:
    def made(**aggregates: Any) -> Job:
        return Stream.read_json("t", Value).key_by("k").window(window).aggregate(**aggregates).write("o")

    records = [(1, 9), (2, 7), (3, 1), (4, 2), (61, 6), (62, 4), (63, 3), (64, 8)]
    stream = TestStream(T0)
    for second, v in records:
        stream = stream.add({"time": T0 + second * 1000, "k": "a", "v": v})
    stream = stream.advance_watermark("3h")
    cut = len(stream.batches) - 1 - len(records[3:])
    before, after = made(n=Count()), made(n=Count(), total=Sum("v"), most=Max("v"), kinds=Distinct("v"))
    found = rows_of(*goes_on(before, after, stream.batches, cut))
    assert [row["n"] for row in found] == [row["n"] for row in rows_of(*goes_on(after, after, stream.batches, cut))]
    for row in found:
        span = range(row["window_start"], row["window_end"])
        seen = [v for second, v in records[3:] if T0 + second * 1000 in span]
        expected = (sum(seen), max(seen), len(set(seen))) if seen else (None, None, None)
        assert (row.get("total"), row.get("most"), row.get("kinds")) == expected


def test_an_aggregate_that_is_added_is_null_in_a_count_window_that_gets_no_record_any_more() -> None:
    def made(**aggregates: Any) -> Job:
        windows = Stream.read_json("t", Value).key_by("k").window(CountWindows(9, timeout="10s"))
        return windows.aggregate(n=Count(), **aggregates).write("o")

    stream = TestStream(T0).add({"time": T0, "k": "a", "v": 3}).advance_watermark("5s").advance_watermark("1h")
    _, then = goes_on(made(), made(total=Sum("v"), kinds=Distinct("v")), stream.batches, 3)
    assert [(row["n"], row.get("total"), row.get("kinds")) for row in rows_of(then)] == [(1, None, None)]


@pytest.mark.parametrize("name", ["tumbling", "sliding", "sliding of many"])
def test_a_partial_named_n_in_state_of_an_earlier_version_still_counts_the_records(name: str) -> None:
    """That version counted records under this name, and took a partial of the job that had it for the count."""
    mean = CustomAggregate(
        {"n": pl.len().cast(pl.Int64), "all": pl.col("v").sum()},
        {"n": pl.col("n").sum(), "all": pl.col("all").sum()},
        pl.col("all") / pl.col("n"),
    )
    made = job(WINDOWS[name], "1h", None, mean=mean, records=Count())
    stream = TestStream(T0).add({"time": T0, "k": "a", "v": 3}, {"time": T0, "k": "a", "v": 5}).advance_watermark("2m")
    stream = stream.add({"time": T0, "k": "a", "v": 10}).advance_watermark("3m")
    driven = Driven(fed_columns(made)).run([batch.entries for batch in stream.batches[:2]])
    (state,) = driven.states
    slices = {segment: unpack(value) for segment, value in state.values.items() if segment.startswith("slices")}
    assert slices
    for segment, tables in slices.items():
        state.values[segment] = pack({table: rows.drop(COUNT) for table, rows in tables.items()})
    rows = rows_of(driven.run([batch.entries for batch in stream.batches[2:]]).written)
    assert {(row["mean"], row["records"], row["revision"]) for row in rows} == {(4.0, 2, 0), (6.0, 3, 1)}
