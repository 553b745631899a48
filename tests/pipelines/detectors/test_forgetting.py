"""What has ended leaves the detector's state, whatever the micro-batches, and begins anew if it comes back."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from models.machine.blocks import LARGEST_BLOCK
from pipelines.contracts.settings import DetectorSettings
from pipelines.jobs.detectors.metrics.judging import Metrics
from tests.pipelines.detectors.shard import DAY, T0, Event, Shard, run, window

HOUR, HOURS = 3_600_000, 120


def hourly(entity: str, metric: str, first: int, last: int, seed: int = 0) -> list[Event]:
    values = np.random.default_rng(seed).normal(50.0, 2.0, last - first + 1).tolist()
    return [window(entity, metric, hour, value) for hour, value in zip(range(first, last + 1), values, strict=True)]


def test_a_series_without_a_window_for_the_time_is_forgotten_and_its_machine_with_the_last_one() -> None:
    events = hourly("host", "cpu", 1, 200) + hourly("pod", "cpu", 1, 50) + hourly("pod", "mem", 1, 90)
    shard = run(events, [60])
    assert shard.known[1] == {("host",), ("pod",)}
    shard = run(events, [60, 73])
    assert ("pod", "cpu") in shard.known[0], "23 hours after its last window"
    shard = run(events, [60, 79])  # a seventh of a day later at most
    assert shard.known == ({("host", "cpu"), ("pod", "mem")}, {("host",), ("pod",)})
    assert shard.deleted == [("pod", "cpu")]
    shard = run(events, [60, 80, 120, 200])
    assert shard.known == ({("host", "cpu")}, {("host",)})
    assert set(shard.deleted) == {("pod", "cpu"), ("pod", "mem"), ("pod", "_machine")}
    assert set(shard.believed) == {("host", "cpu")}


def test_what_reports_once_a_week_is_known_from_week_to_week() -> None:
    weekly = [window("host", "backup", hour) for hour in range(1, 8 * 168, 168)]
    known = DetectorSettings(forget="7d")
    detection = Metrics(2 * HOUR).judge(known).detection
    state = detection.new_state()
    for event in weekly:
        detection.process(pl.DataFrame([event]).with_columns(value=pl.col("mean")), state)
        due = detection.forgetting.next_due(state)
        assert due > event["window_end"] + 7 * DAY
    assert due <= weekly[-1]["window_end"] + 22 * DAY, "three weeks, and a day until the next look"


def test_a_series_that_is_met_once_is_kept_for_twice_the_time() -> None:
    events = [*hourly("host", "cpu", 1, 100), window("host", "once", 10)]
    assert ("host", "once") in run(events, [57]).known[0]
    assert ("host", "once") not in run(events, [57, 62]).known[0]


def test_a_window_of_a_forgotten_series_begins_it_anew() -> None:
    events = hourly("host", "cpu", 1, 150) + hourly("pod", "cpu", 1, 50, 1) + hourly("pod", "cpu", 101, 150, 2)
    others = hourly("host", "cpu", 1, 150) + hourly("pod", "cpu", 101, 150, 2)
    found, fresh = run(events, [50, 100, 150]), run(others, [50, 100, 150])
    assert found.believed == fresh.believed
    for name, table in fresh.tables().items():
        assert_frame_equal(found.tables()[name], table, check_exact=True)


@st.composite
def lives(draw: st.DrawFn) -> list[Event]:
    """Series that come, pause, end and come back, of a few machines, over some days."""
    events = []
    for number in range(draw(st.integers(3, 5))):
        hours, hour = list[int](), draw(st.integers(1, 60))
        while hour < HOURS:
            lasts = draw(st.integers(1, 60))
            hours += range(hour, min(hour + lasts, HOURS))
            hour += lasts + draw(st.sampled_from([3, 20, 25, 30, 49, 80]))
        values = np.random.default_rng(number).normal(50.0, 2.0, HOURS)
        entity, metric = f"m{number % 3}", f"x{number}"
        events += [window(entity, metric, at, float(values[at])) for at in hours]
    return events


@settings(max_examples=3, deadline=None, suppress_health_check=list(HealthCheck))
@given(events=lives(), data=st.data())
def test_what_is_forgotten_depends_neither_on_micro_batches_nor_on_late_windows(
    events: list[Event], data: st.DataObject
) -> None:
    once = run(events, [HOURS])
    cuts = sorted(data.draw(st.sets(st.integers(1, HOURS - 1), max_size=6)))
    many = run(events, [*cuts, HOURS])
    late = Shard()
    delayed = data.draw(st.lists(st.booleans(), min_size=len(events), max_size=len(events)))
    coming = [(e["window_end"] + (HOUR + HOUR // 2 if slow else 0), e) for e, slow in zip(events, delayed, strict=True)]
    for hour in range(2, HOURS + 4, 2):
        begin, end = T0 + (hour - 2) * HOUR, T0 + hour * HOUR
        late.take([event for at, event in coming if begin < at <= end], min(hour, HOURS))
    for other in (many, late):
        assert other.believed.keys() == once.believed.keys()
        assert_frame_equal(other.last_verdicts(), once.last_verdicts(), check_exact=True)
        assert other.tables().keys() == once.tables().keys()
        for name, table in once.tables().items():
            beside = [column for column in table.columns if other is late and column.startswith("fleet.")]
            found, wanted = (each.drop(beside) for each in (other.tables()[name], table))
            assert_frame_equal(found, wanted, check_exact=True)  # what comes late changes nothing beside peers


@pytest.mark.parametrize("batches", [1, 20], ids=["at once", "day by day"])
def test_metrics_that_come_and_go_do_not_widen_their_machine_for_ever(batches: int) -> None:
    names = [(f"disk{day}-{n}", 24 * day + 1) for day in range(20) for n in range(8)]
    events = [event for name, first in names for event in hourly("host", name, first, first + 23)]
    events += hourly("host", "cpu", 1, 480)
    shard = run(events, [480 * n // batches for n in range(1, batches + 1)])
    state = shard.state
    assert len(state.series) <= 8 * 3 + 1
    assert state.entities.columns["machine.metrics"][0] <= 2 * (8 * 4 + 1) <= 3 * LARGEST_BLOCK
