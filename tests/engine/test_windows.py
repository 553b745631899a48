"""Spans of windows, what is refused, and that state does not grow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.reference.spans import spans_of
from engine.spec.errors import NewnormalError
from engine.testing import Driven, TestStream
from engine.triggers import AfterAll, AfterCount, AfterProcessingTime, AfterWatermark
from engine.windows import Calendar, Global, KeepLast, KeepRecent, Session, Sliding, Tumbling, Window
from tests.engine.panes import event, job

T0 = 1_700_000_000_000
WINDOWS = [
    Tumbling("10s", offset="3s"),
    Sliding("21s", every="7s"),
    Session("5s"),
    Global(),
    *(Calendar(unit, "Europe/Stockholm", "2h30m") for unit in ("day", "week", "month", "quarter", "year")),
    Calendar("day", "America/Sao_Paulo"),
    Calendar("day", "America/St_Johns"),
]


@pytest.mark.parametrize("window", WINDOWS, ids=repr)
@given(times=st.lists(st.integers(1_000_000_000_000, 1_800_000_000_000), max_size=20))
def test_spans_of_a_column_are_those_of_its_records(window: Window, times: list[int]) -> None:
    spans = window.spans(np.array(times, np.int64))
    got = sorted(zip(spans.rows.tolist(), spans.starts.tolist(), spans.ends.tolist(), strict=True))
    wanted = [(i, *span) for i, time in enumerate(times) for span in spans_of(window, time)]
    assert got == sorted(wanted)
    assert all(start <= times[i] < end for i, start, end in got)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Tumbling("0s"),
        lambda: Sliding("10s", every="0s"),
        lambda: Session("0s"),
        lambda: Calendar("fortnight"),  # type: ignore[arg-type]
        lambda: Calendar("day", "Europe/Atlantis"),
        lambda: Calendar("day", begins="25h"),
        lambda: KeepLast(0),
        lambda: KeepRecent("0s"),
        lambda: AfterCount(0),
        lambda: AfterProcessingTime("0s"),
        AfterAll,
    ],
)
def test_what_makes_no_sense_is_refused(make: Callable[[], Any]) -> None:
    with pytest.raises(NewnormalError, match=r"(WINDOW|EVICTOR|TRIGGER)_INVALID"):
        make()


@pytest.mark.parametrize("window", [Tumbling("10s", offset="1s"), Session("10s"), Calendar("day")], ids=repr)
def test_state_is_forgotten_once_nothing_can_change_it(window: Window) -> None:
    counting = job(window, AfterWatermark(early=AfterCount(2)), lateness="30s")
    run = Driven(counting)
    stream = TestStream(T0)
    for t in range(0, 2000, 50):
        stream = stream.add(event("a", T0 + t * 1000, 1), event("b", T0 + t * 1000, 1)).advance_watermark(t * 1000)
    run.run([batch.entries for batch in stream.batches])
    assert "windows" in run.states[0].values
    assert len(run.states[0].values["windows"]) < 20_000
    run.run([stream.advance_watermark("9d").batches[-1].entries])
    assert "windows" not in run.states[0].values


def test_an_evictor_bounds_what_a_window_of_all_time_keeps() -> None:
    counting = job(Global(), AfterCount(2), evict=KeepLast(3))
    stream = TestStream(T0)
    for t in range(40):
        stream = stream.add(*(event("a", T0 + t * 1000 + i, i) for i in range(20)))
    early = Driven(counting).run([batch.entries for batch in stream.batches[:5]])
    later = Driven(counting).run([batch.entries for batch in stream.batches])
    assert len(later.states[0].values["windows"]) < 1.2 * len(early.states[0].values["windows"])


def test_a_day_begins_where_a_negative_offset_says() -> None:
    """A day in UTC+8 begins at 16:00 UTC of the day before, which is eight hours before midnight."""
    day, hour = 86_400_000, 3_600_000
    midnight = 20_000 * day
    for window in (Tumbling("1d", "-8h"), Tumbling("1d", "16h")):
        spans = window.spans(np.array([midnight - 8 * hour - 1, midnight - 8 * hour, midnight]))
        assert spans.starts.tolist() == [midnight - 32 * hour, midnight - 8 * hour, midnight - 8 * hour]
        assert spans_of(window, midnight) == [(midnight - 8 * hour, midnight + 16 * hour)]
