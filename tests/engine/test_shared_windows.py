"""Windows that share slices give, pane by pane, what windows held one by one give: sharing is only faster."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine import Instant, Record, Stream
from engine.aggregates import Count, Rate
from engine.operators.windows import WindowAggregate
from engine.spec.errors import NewnormalError
from engine.spec.job import Job
from engine.testing import TestStream, run
from engine.triggers import ACCUMULATING, AfterAny, AfterCount, AfterWatermark, Discarding, Never
from engine.vectorized import build
from engine.vectorized.windows.held_back import HeldBack
from engine.vectorized.windows.sliced import SlicedWindows
from engine.vectorized.windows.triggered import GeneralWindows
from engine.windows import KeepLast, Session, Sliding, Tumbling, Window
from tests.engine.panes import event, job
from tests.engine.test_general_windows import few, panes, streams

T0 = 1_700_000_000_000
ONE_BY_ONE = AfterAny(AfterWatermark(), Never())
"""Fires as windows without a trigger do, and is held window by window."""

ALIGNED: dict[str, Window] = {
    "tumbling": Tumbling("10s"),
    "sliding": Sliding("20s", every="5s"),
    "with an offset": Sliding("20s", every="10s", offset="3s"),
}


def _windows(job: Job) -> object:
    """The logic of a job's windows, without what holds records back for them."""
    built = build(job.processor)
    return built.windows if isinstance(built, HeldBack) else built


@pytest.mark.parametrize("window", ALIGNED.values(), ids=ALIGNED)
@few
@given(stream=streams(), lateness=st.sampled_from(["0s", "5s", "15s"]))
def test_the_panes_are_the_same_either_way(window: Window, stream: TestStream, lateness: str) -> None:
    shared, single = job(window, None, lateness=lateness), job(window, ONE_BY_ONE, lateness=lateness)
    assert isinstance(_windows(shared), SlicedWindows)
    assert isinstance(_windows(single), GeneralWindows)
    got, wanted = run(shared, stream), run(single, stream)
    assert panes(got) == panes(wanted)
    assert sorted(map(repr, got.late)) == sorted(map(repr, wanted.late))


def test_a_late_record_revises_only_the_windows_whose_own_lateness_is_not_over() -> None:
    """The record at 12 s lies in [0, 20) and [10, 30); at watermark 25 s the first one's 5 s of lateness are over."""
    stream = TestStream(T0).add(event("a", T0 + 11_000, 1.0)).advance_watermark("25s").add(event("a", T0 + 12_000, 2.0))
    stream = stream.advance_watermark("60s")
    for trigger in (None, ONE_BY_ONE):
        got = run(job(Sliding("20s", every="10s"), trigger, lateness="5s"), stream)
        sums = sorted(
            (row["window_start"] - T0, row["pane"], row["timing"], row["revision"], row["sum"]) for row in got.rows
        )
        assert sums == [(0, 0, "on_time", 0, 1.0), (10_000, 0, "on_time", 0, 3.0)]
        assert not got.late


def test_a_trigger_that_is_the_default_changes_nothing() -> None:
    assert job(Tumbling("10s"), AfterWatermark()).processor.shared  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("window", "trigger", "how", "evict"),
    [
        (Session("10s"), None, ACCUMULATING, None),
        (Tumbling("10s"), AfterCount(2), ACCUMULATING, None),
        (Tumbling("10s"), None, Discarding(), None),
        (Tumbling("10s"), None, ACCUMULATING, KeepLast(3)),
    ],
)
def test_a_rate_is_refused_where_it_would_mean_something_else(window, trigger, how, evict) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(NewnormalError, match="AGGREGATE_UNSUPPORTED") as refused:
        WindowAggregate(("key",), "time", window, "0s", {"n": Count(), "rate": Rate("value")}, trigger, how, evict)
    assert "Tumbling windows or Sliding ones" in str(refused.value)


@given(st.integers(-50, 50), st.integers(-90, 90), st.integers(-90, 90))
def test_the_ends_between_two_instants_are_those_of_all_that_lie_there(
    slice_number: int, after: int, until: int
) -> None:
    window = Sliding("50ms", every="10ms", offset="3ms")
    start = window.slice_start(slice_number * 10)
    expected = [end for end in window.ends_of(start) if after < end <= until]
    assert list(window.ends_between(start, after, until)) == expected


class Word(Record):
    """A record of a key."""

    time: Instant
    word: str


def test_many_windows_of_many_slices_have_what_lies_in_them() -> None:
    """The boundary: more windows are due at once than are put together at once."""
    stream = TestStream(T0).advance_clock("1h")
    stream = stream.add(*({"time": T0 + second * 1000, "word": "a"} for second in (0, 0, 70))).advance_watermark("10m")
    windowed = Stream.read_json("t", Word).key_by("word").window(Sliding("100s", every="1s"))
    rows = run(windowed.aggregate(n=Count()).write("o"), stream).rows
    found = {(row["window_end"] - T0) // 1000: row["n"] for row in rows}
    assert found == {end: 2 * (end <= 100) + (end > 70) for end in range(1, 171)}
    assert len(rows) == 170
