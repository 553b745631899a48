"""Final panes follow from the records alone: not from arrival, micro-batches, partitions, shards or crashes."""

from __future__ import annotations

import os
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from engine.reference.spans import spans_of
from engine.testing import ABORT, RESTART, TestStream, bounded, run
from engine.triggers import (
    ACCUMULATING,
    AccumulatingAndRetracting,
    Accumulation,
    AfterCount,
    AfterProcessingTime,
    AfterWatermark,
    Discarding,
    Never,
    Trigger,
)
from engine.windows import Calendar, Session, Sliding, Tumbling, Window
from tests.engine.panes import event, job

T0 = 1_700_000_000_000
LATENESS = 20_000
WINDOWS: dict[str, Window] = {
    "tumbling": Tumbling("10s"),
    "sliding": Sliding("20s", every="5s", offset="2s"),
    "session": Session("6s"),
    "day": Calendar("day", "America/New_York"),
}
TRIGGERS: list[Trigger] = [
    AfterWatermark(),
    AfterWatermark(early=AfterCount(2), late=AfterCount(3)),
    AfterWatermark(early=AfterProcessingTime("3s"), late=AfterProcessingTime("5s")),
    Never(),
]
few = settings(
    deadline=None,
    max_examples=int(os.environ.get("NEWNORMAL_EXAMPLES", "6")),
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    suppress_health_check=[HealthCheck.too_slow],
)
Totals = dict[tuple[str, int, int], tuple[float, int]]


@st.composite
def histories(draw: st.DrawFn, behind: int = LATENESS) -> TestStream:
    """Records in any order that comes to no more than ``behind`` behind the watermark, and all else at will."""
    times = draw(st.lists(st.integers(0, 60), min_size=1, max_size=25))
    records = [event(draw(st.sampled_from("ab")), T0 + t * 1000, float(2**i)) for i, t in enumerate(times)]
    stream, watermark = TestStream(T0, partitions=2), -(10**6)
    waiting = draw(st.permutations(records))
    while waiting:
        n = draw(st.integers(1, 6))
        some, waiting = waiting[:n], waiting[n:]
        items: list[Any] = [*some]
        if draw(st.integers(0, 3)) == 0:
            items.insert(draw(st.integers(0, len(items))), draw(st.sampled_from([ABORT, RESTART])))
        stream = stream.add(*items, partition=draw(st.integers(0, 1)))
        if waiting and draw(st.booleans()):
            oldest = min(r["time"] for r in waiting) - T0
            watermark = max(watermark, oldest + draw(st.integers(0, behind)) - 1)
            stream = stream.advance_watermark(watermark)
            stream = stream.as_one_batch(2) if draw(st.booleans()) else stream
        if draw(st.integers(0, 3)) == 0:
            stream = stream.advance_clock(draw(st.integers(1, 9)) * 1000)
    return stream.advance_watermark("7d")


def totals(rows: list[dict[str, Any]], how: Accumulation, sessions: bool) -> Totals:
    """Sum and number of each window: by its last pane, or by all of them together."""
    result: Totals = {}
    for row in sorted(rows, key=lambda r: (r["pane"], not r["retraction"])):
        name = row["key"], row["window_start"], row["window_end"]
        was = result.get(name, (0.0, 0)) if isinstance(how, Discarding) else (0.0, 0)
        result[name] = was[0] + row["sum"], was[1] + row["n"]
    if not sessions:
        return result
    return {
        (key, start, end): value
        for (key, start, end), value in result.items()
        if not any(k == key and (s, e) != (start, end) and s <= start and end <= e for k, s, e in result)
    }


def expected(stream: TestStream, window: Window) -> Totals:
    """The same from the records alone."""
    spans: dict[tuple[str, int, int], tuple[float, int]] = {}
    for record in sorted(stream.records(), key=lambda r: (r["key"], r["time"])):
        for start, end in spans_of(window, record["time"]):
            name = record["key"], start, end
            if window.merges:
                last = next((n for n in spans if n[0] == record["key"] and start < n[2]), None)
                was = spans.pop(last) if last else (0.0, 0)
                name = (record["key"], last[1], end) if last else name
            else:
                was = spans.get(name, (0.0, 0))
            spans[name] = was[0] + record["value"], was[1] + 1
    return spans


@pytest.mark.parametrize("window", WINDOWS.values(), ids=WINDOWS)
@few
@given(
    stream=histories(),
    trigger=st.sampled_from(TRIGGERS),
    how=st.sampled_from([ACCUMULATING, Discarding(), AccumulatingAndRetracting()]),
    shards=st.sampled_from([1, 2, 3]),
)
def test_final_panes_follow_from_the_records(
    window: Window, trigger: Trigger, stream: TestStream, how: Accumulation, shards: int
) -> None:
    got = run(job(window, trigger, how, "20s"), stream, "operator", shards)
    assert got.late == []
    if window.merges and isinstance(how, Discarding):
        assert sum(row["sum"] for row in got.rows) == sum(r["value"] for r in stream.records())
    else:
        assert totals(got.rows, how, window.merges) == expected(stream, window)


@pytest.mark.parametrize("window", WINDOWS.values(), ids=WINDOWS)
@few
@given(
    stream=histories(behind=80_000), trigger=st.sampled_from(TRIGGERS), lateness=st.sampled_from(["0s", "4s", "15s"])
)
def test_what_is_in_no_window_is_in_the_late_topic(
    window: Window, trigger: Trigger, stream: TestStream, lateness: str
) -> None:
    """Each value is another power of two: the sum of a window tells which records it holds."""
    got = run(job(window, trigger, Discarding(), lateness), stream, "operator")
    inside = 0
    for row in got.rows:
        inside |= int(row["sum"])
    late = sum(int(r["value"]) for r in got.late)
    assert inside & late == 0
    assert inside | late == sum(int(r["value"]) for r in stream.records())


@few
@given(stream=histories(), shards=st.sampled_from([1, 2]), pieces=st.sampled_from([1, 3]))
def test_bounded_input_gives_the_same(stream: TestStream, shards: int, pieces: int) -> None:
    for window in WINDOWS.values():
        rows, late = bounded(job(window, AfterWatermark(), ACCUMULATING, "0s"), stream.records(), shards, pieces)
        got = {(r["key"], r["window_start"], r["window_end"]): (r["sum"], r["n"]) for r in rows}
        assert got == expected(stream, window)
        assert late == []
        assert {r["timing"] for r in rows} == {"on_time"}
