"""Late windows of series with a bound: what is told of when they are full ends as if all had come on time."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from engine.spec.duration import END_OF_TIME
from tests.pipelines.detectors import test_late_windows as late
from tests.pipelines.detectors.test_late_windows import IDENTITY, Event, Job, run

STEP, STEPS = 300_000, 110
HORIZON, LATENESS = 3_600_000, 3_000_000
DISK, MACHINES = "disk.used_percent{path=/}", ("a", "b")


@pytest.fixture(autouse=True)
def _of_minutes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(late, "HORIZON", HORIZON)


def windows(seed: int) -> list[Event]:
    """Disks that fill to 95 % in eleven hours, which one machine then cleans; and another metric."""
    rng = np.random.default_rng(seed)
    found = []
    for n in range(STEPS):
        for machine in MACHINES:
            used = 30.0 if machine == "a" and n > 100 else 40 + 55 * n / STEPS
            for metric, value in ((DISK, used + 0.05 * rng.normal()), ("load", rng.normal(5, 1))):
                start = n * STEP
                row = {"entity": machine, "metric": metric, "kind": "gauge", "window_start": start}
                found.append(row | {"window_end": start + STEP, "count": 1, "mean": float(value), "revision": 0})
    return found


@st.composite
def arrivals(draw: st.DrawFn) -> tuple[list[Event], list[list[Event]]]:
    """What is true in the end, and micro-batches in which it arrives, none later than allowed."""
    events = windows(draw(st.integers(0, 3)))
    delayed = draw(st.lists(st.integers(250, len(events) - 1), max_size=10, unique=True))
    coming = []
    for number, event in enumerate(events):
        delay = draw(st.integers(1, LATENESS)) if number in delayed else 0
        if delay and draw(st.booleans()):  # a first revision came on time and was wrong
            wrong = draw(st.sampled_from([5.0, 60.0, 99.9, 100.0, 101.0, 500.0]))
            coming.append((event["window_end"], number, event | {"mean": wrong}))
            events[number] = event | {"revision": 1}
        coming.append((event["window_end"] + delay, number, events[number]))
    order = [event for *_, event in sorted(coming, key=lambda each: each[:2])]
    cuts = sorted(draw(st.lists(st.integers(0, len(order)), max_size=15)))
    return events, [order[a:b] for a, b in pairwise([0, *cuts, len(order)])]


def on_time(events: list[Event], emit: str) -> Job:
    job = Job(emit)
    for time in range(10 * STEP, (STEPS + 20) * STEP, 10 * STEP):
        job.take([event for event in events if time - 10 * STEP < event["window_end"] <= time], time)
    job.take([], END_OF_TIME)
    return job


@settings(max_examples=2, deadline=None, suppress_health_check=list(HealthCheck))
@given(arrivals=arrivals(), emit=st.sampled_from(["all", "novel"]))
def test_forecasts_end_as_if_all_windows_had_come_on_time(
    arrivals: tuple[list[Event], list[list[Event]]], emit: str
) -> None:
    events, batches = arrivals
    wanted, found = on_time(events, emit), run(batches, emit)
    assert found.late == 0
    right, final = wanted.final(), found.final()
    told = right.filter(pl.col("metric").str.ends_with("~full"))
    assert set(told["entity"]) == set(MACHINES), "what fills is told"
    gone = final.join(right, on=IDENTITY, how="anti")
    assert set(gone["kind"]) <= {"normal", "learning"}, "what was told and is not true is taken back"
    assert_frame_equal(final.join(right, on=IDENTITY, how="semi", maintain_order="left"), right, check_exact=True)
    believed, state = found.believed(), wanted.believed()
    assert believed.keys() == state.keys()
    assert believed["filling"].height == len(MACHINES)
    for name, table in state.items():
        assert_frame_equal(believed[name], table, check_exact=True)
