"""Lateness to the millisecond: the last instant at which a record still counts, and the first at which it is late.

A window with the lateness L is over when the watermark reaches its end + L: from then on its records are late.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from engine.operators.deduplicate import Deduplicate
from engine.reference import Arrival, Watermark
from engine.stream import Stream
from engine.triggers import AfterCount, Trigger
from engine.windows import Session, Sliding, Tumbling, Window
from tests.engine.operators.conftest import job_of, point, points
from tests.engine.panes import event, job

T0 = 1_700_000_000_000
ARRIVED = T0 + 60_000
ENDS, LATENESS = 10_000, 5_000
"""The window [0 s, 10 s) and how long it is open to late records, in milliseconds."""

KINDS: dict[str, Callable[[], Any]] = {
    "aligned": lambda: job(Tumbling("10s"), lateness="5s"),
    "of a trigger": lambda: job(Tumbling("10s"), AfterCount(1), lateness="5s"),
    "sessions": lambda: job(Session("1s"), lateness="5s"),
}
LAST_RECORD = {"aligned": 9_999, "of a trigger": 9_999, "sessions": 9_000}
"""A record whose window ends at `ENDS`: of a session that is the record plus the gap."""


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("watermark", "late"), [(ENDS + LATENESS - 1, 0), (ENDS + LATENESS, 1)])
def test_a_record_is_late_from_the_instant_on_at_which_the_watermark_reaches_the_end_and_the_lateness(
    driven: Callable[..., Any], kind: str, watermark: int, late: int
) -> None:
    record = event("a", T0 + LAST_RECORD[kind], 1.0)
    batches = [[Watermark("t", 0, ARRIVED, T0 + watermark)], [Arrival("t", 0, ARRIVED, record)]]
    end = [Watermark("t", 0, ARRIVED, T0 + 600_000)]
    run = driven(KINDS[kind](), 1).run([*batches, end])
    assert len(run.late) == late
    assert sum(row["n"] for row in run.rows) == 1 - late


@pytest.mark.parametrize("trigger", [None, AfterCount(1)], ids=["aligned", "of a trigger"])
@pytest.mark.parametrize(("watermark", "revised"), [(14_999, [10_000, 15_000]), (15_000, [15_000])])
def test_of_windows_that_overlap_a_late_record_revises_those_that_are_not_over(
    driven: Callable[..., Any], trigger: Trigger | None, watermark: int, revised: list[int]
) -> None:
    """A record at 7 s is in [0 s, 10 s), which is over when the watermark reaches 15 s, and in [5 s, 15 s)."""
    sliding = job(Sliding("10s", every="5s"), trigger, lateness="5s")
    first, second = (Arrival("t", 0, ARRIVED, event("a", T0 + 7_000, value)) for value in (1.0, 2.0))
    run = driven(sliding, 1).run([[first], [Watermark("t", 0, ARRIVED, T0 + watermark)], [second]])
    run.run([[Watermark("t", 0, ARRIVED, T0 + 600_000)]])
    assert run.late == []
    assert sorted(row["window_end"] - T0 for row in run.rows if row["n"] == 2) == revised


@pytest.mark.parametrize(("watermark", "late"), [(5_000, 0), (5_001, 1)])
def test_an_operator_in_event_time_order_takes_a_record_at_the_watermark_and_none_before_it(
    driven: Callable[..., Any], watermark: int, late: int
) -> None:
    stream = Stream.read(points("l")).key_by("key").process(Deduplicate(by=("word",), within="1s"))
    batches = [[Watermark("l", 0, ARRIVED, T0 + watermark)], [Arrival("l", 0, ARRIVED, point(5_000))]]
    end = [Watermark("l", 0, ARRIVED, T0 + 600_000)]
    run = driven(job_of(stream), 1).run([*batches, end])
    assert (len(run.late), len(run.rows)) == (late, 1 - late)


@pytest.mark.parametrize("window", [Tumbling("10s"), Session("1s")], ids=["aligned", "session"])
def test_a_window_closes_when_the_watermark_is_its_end_and_not_a_millisecond_before(
    driven: Callable[..., Any], window: Window
) -> None:
    record = event("a", T0 + (9_000 if isinstance(window, Session) else 9_999), 1.0)
    run = driven(job(window), 1)
    run.run([[Arrival("t", 0, ARRIVED, record), Watermark("t", 0, ARRIVED, T0 + ENDS - 1)]])
    assert run.rows == []
    run.run([[Watermark("t", 0, ARRIVED, T0 + ENDS)]])
    assert [row["n"] for row in run.rows] == [1]
