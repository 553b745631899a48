"""Windows of any kind with any trigger: the operator gives what the reference says, pane by pane."""

from __future__ import annotations

import os
from typing import Any

import polars as pl
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from engine.testing import ABORT, RESTART, Run, TestStream, run
from engine.triggers import (
    ACCUMULATING,
    AccumulatingAndRetracting,
    Accumulation,
    AfterAll,
    AfterAny,
    AfterCount,
    AfterEach,
    AfterProcessingTime,
    AfterWatermark,
    CustomTrigger,
    Discarding,
    Never,
    OrFinally,
    Trigger,
)
from engine.windows import Calendar, Evictor, Global, KeepLast, KeepRecent, Policy, Session, Sliding, Tumbling, Window
from tests.engine.panes import event, job

T0 = 1_700_000_000_000
LATENESS = 15_000


class Above(CustomTrigger):
    """As soon as the sum is above 10."""

    def should_fire(self, windows: pl.DataFrame) -> pl.Series:
        return windows["sum"] > 10


WINDOWS: dict[str, Window] = {
    "tumbling": Tumbling("10s", offset="3s"),
    "sliding": Sliding("20s", every="10s"),
    "session": Session("8s"),
    "global": Global(),
    "day": Calendar("day", "Europe/Stockholm", begins="6h"),
    "policy": Policy(AfterCount(3), KeepRecent("10s")),
}
TRIGGERS: dict[str, Trigger] = {
    "watermark": AfterWatermark(),
    "early and late": AfterWatermark(early=AfterProcessingTime("5s"), late=AfterCount(2)),
    "early counts": AfterWatermark(early=AfterCount(2), late=AfterCount(1)),
    "late times": AfterWatermark(late=AfterProcessingTime("4s", aligned=False)),
    "count": AfterCount(3),
    "every": AfterProcessingTime("5s"),
    "any": AfterAny(AfterCount(3), AfterProcessingTime("7s"), AfterWatermark()),
    "all": AfterAll(AfterCount(2), AfterProcessingTime("3s", aligned=False)),
    "all at watermark": AfterAll(AfterWatermark(), AfterCount(3)),
    "all, once at the watermark": AfterAll(AfterWatermark(late=Never()), AfterCount(2)),
    "all, one of them own": AfterAll(
        Above(), AfterCount(3), AfterAny(AfterWatermark(late=Never()), AfterProcessingTime("9s"))
    ),
    "count or all": AfterAny(AfterCount(6), AfterAll(AfterWatermark(late=Never()), AfterProcessingTime("2s"))),
    "until all": OrFinally(AfterCount(2), AfterAll(AfterWatermark(late=Never()), AfterCount(4))),
    "all in order": AfterEach(AfterAll(AfterWatermark(late=Never()), AfterCount(2)), AfterAll(AfterCount(1), Above())),
    "in order": AfterEach(AfterCount(1), AfterCount(2), AfterWatermark()),
    "paper": AfterEach(OrFinally(AfterProcessingTime("5s"), AfterWatermark()), AfterWatermark()),
    "until": OrFinally(AfterCount(2), AfterCount(5)),
    "nested": AfterWatermark(
        early=AfterEach(OrFinally(AfterCount(1), AfterCount(2)), OrFinally(AfterProcessingTime("3s"), AfterCount(3)))
    ),
    "never": Never(),
    "own": Above(),
    "own or watermark": AfterAny(Above(), AfterWatermark()),
}
PANES: list[Accumulation] = [ACCUMULATING, Discarding(), AccumulatingAndRetracting()]

few = settings(
    deadline=None,
    max_examples=int(os.environ.get("NEWNORMAL_EXAMPLES", "6")),
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    suppress_health_check=[HealthCheck.too_slow],
)


@st.composite
def streams(draw: st.DrawFn, behind: int = 40_000) -> TestStream:
    """Records up to ``behind`` out of order, watermarks, processing time, crashes, micro-batches of several steps."""
    stream, event_time, watermark = TestStream(T0, partitions=2), 0, -100_000
    for _ in range(draw(st.integers(1, 8))):
        step = draw(st.sampled_from(["add", "add", "add", "watermark", "clock"]))
        if step == "add":
            items: list[Any] = []
            for _ in range(draw(st.integers(1, 7))):
                event_time += draw(st.integers(0, 6)) * 1000
                time = max(event_time - draw(st.integers(0, behind // 1000)) * 1000, watermark - LATENESS + 1)
                time = time if behind <= LATENESS else event_time - draw(st.integers(0, behind // 1000)) * 1000
                items.append(event(draw(st.sampled_from("ab")), T0 + time, draw(st.integers(-3, 9))))
                if draw(st.integers(0, 9)) == 0:
                    items.append(draw(st.sampled_from([ABORT, RESTART])))
            stream = stream.add(*items, partition=draw(st.integers(0, 1)))
        elif step == "watermark":
            watermark = max(watermark, event_time - draw(st.integers(-5, 10)) * 1000)
            stream = stream.advance_watermark(watermark)
        else:
            stream = stream.advance_clock(draw(st.integers(1, 12)) * 1000)
        if len(stream.batches) > 2 and draw(st.integers(0, 3)) == 0:
            stream = stream.as_one_batch(2)
    return stream.advance_watermark(event_time + draw(st.sampled_from([0, 200_000])))


def panes(outcome: Run) -> list[tuple[Any, ...]]:
    names = ("key", "window_start", "window_end", "pane", "timing", "revision", "retraction", "n", "max")
    rows = [(*(row.get(name) or (0 if name == "retraction" else row.get(name)) for name in names),
             round(row["sum"], 6)) for row in outcome.rows]  # fmt: skip
    return sorted(rows, key=repr)


@pytest.mark.parametrize("window", WINDOWS.values(), ids=WINDOWS)
@few
@given(
    stream=streams(),
    trigger=st.sampled_from(list(TRIGGERS.values())),
    how=st.sampled_from(PANES),
    lateness=st.sampled_from(["0s", "5s", "15s"]),
    evict=st.sampled_from([None, None, KeepLast(2), KeepRecent("6s")]),
    shards=st.sampled_from([1, 2]),
)
def test_panes_are_those_of_the_reference(
    window: Window, trigger: Trigger, stream: TestStream, how: Accumulation, lateness: str, evict: Evictor | None,
    shards: int,
) -> None:  # fmt: skip
    counting = job(window, trigger, how, lateness, evict)
    wanted, got = run(counting, stream, "reference"), run(counting, stream, "operator", shards)
    assert got.watermarks == wanted.watermarks
    assert panes(got) == panes(wanted)
    order = lambda r: (r["key"], r["time"], r["value"])  # noqa: E731
    assert sorted(got.late, key=order) == sorted(wanted.late, key=order)
