"""Late windows, rules and labels: whatever the order of arrival and the batches, it ends as if all had come on time."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from engine.spec.duration import END_OF_TIME, NEVER
from engine.spec.operator import Progress
from engine.state.segments import DictSegments, ShardState
from engine.vectorized.build import build
from pipelines.contracts.records import Label, Rule
from pipelines.contracts.records.novelty import JOINED
from pipelines.contracts.settings import DetectorSettings
from pipelines.jobs.detectors.detect_operator import Detect
from pipelines.jobs.detectors.metrics.judging import Metrics
from pipelines.jobs.detectors.metrics.model_log import ModelLog
from pipelines.jobs.detectors.metrics.verdict_frames import SCHEMA
from pipelines.jobs.detectors.state_table import as_frame

STEP, STEPS = 10_000, 36
LATENESS, HORIZON = 50_000, 60_000
IDENTITY = ("entity", "metric", "window_start", "window_end")
SERIES = [("a", "cpu"), ("a", "mem"), ("a", "net"), ("b", "cpu"), ("c", "cpu"), ("c", "mem")]
COLUMNS: dict[str, Any] = {
    "entity": pl.String,
    "metric": pl.String,
    "kind": pl.String,
    "window_start": pl.Int64,
    "window_end": pl.Int64,
    "count": pl.Int64,
    "mean": pl.Float64,
    "p95": pl.Float64,
    "rate": pl.Float64,
    "revision": pl.Int64,
    "rule": pl.String,
    "label": pl.String,
}
Event = dict[str, Any]


@dataclass
class Job:
    """The detector's processor with state that lasts; what it has said so far."""

    emit: str = "all"
    segments: DictSegments = field(default_factory=DictSegments)
    said: list[pl.DataFrame] = field(default_factory=list)
    late: int = 0
    watermark: int = NEVER

    def take(self, events: list[Event], now: int) -> None:
        settings = DetectorSettings(emit=self.emit, threshold=30.0)
        processor, state = build(Detect(settings, Metrics(HORIZON))), ShardState(self.segments)
        now = max(now, self.watermark)
        results = processor.process(pl.DataFrame(events, COLUMNS), state, Progress(self.watermark, now))
        state.save()
        self.watermark = now
        self.said += [results.records] if results.records.height else []
        self.late += results.late.height if results.late is not None else 0

    def final(self) -> pl.DataFrame:
        """The last revision of each verdict."""
        said = pl.concat(self.said).sort("revision", maintain_order=True)
        last = said.unique(IDENTITY, keep="last").sort("window_end", "entity", "metric")
        return last.drop("revision")

    def believed(self) -> dict[str, pl.DataFrame]:
        """The models' state in an order of its own; where rows of machines lie does not matter."""
        models = Metrics(HORIZON).judge(DetectorSettings()).detection.new_state()
        assert ModelLog(ShardState(self.segments)).read(models)
        tables, keys = {n: as_frame(table) for n, table in models.to_tables().items()}, ("entity", "metric", "block")
        return {n: t.sort([key for key in keys if key in t.columns]) for n, t in tables.items() if t.height}


def window(entity: str, metric: str, number: int, value: float, revision: int = 0) -> Event:
    start = number * STEP
    row = {"entity": entity, "metric": metric, "kind": "gauge", "window_start": start, "window_end": start + STEP}
    return row | {"count": 1, "mean": value, "revision": revision}


def said(record: Rule | Label) -> Event:
    return {"window_end": record.effective_from, type(record).__name__.lower(): record.to_json().decode()}


def windows(steps: int = STEPS, seed: int = 0) -> list[Event]:
    """Noise, with a lasting shift of ``a`` from window 25 on."""
    rng = np.random.default_rng(seed)
    return [
        window(entity, metric, n, float(rng.normal(50, 3)) + (60 if entity == "a" and n >= 25 else 0))
        for n in range(steps)
        for entity, metric in SERIES
    ]


def on_time(events: list[Event], emit: str = "all") -> Job:
    job = Job(emit)
    for time in range(4 * STEP, (STEPS + 8) * STEP, 4 * STEP):
        job.take([event for event in events if time - 4 * STEP < event["window_end"] <= time], time)
    job.take([], END_OF_TIME)
    return job


NOTICES = [
    said(Rule(id="quiet", time=120_000, entity="a", end=330_000, skip_learning=True)),
    said(Rule(id="quiet", time=290_000, entity="c*", end=330_000, skip_result=True)),
    said(Rule(id="up", time=150_000, metric="cpu", only="up", min_change=1.0)),
    said(Rule(id="most", time=180_000, start=250_000, entity="b", above=52.0, report=True)),
    said(Rule(id="up", time=350_000, active=False)),
    said(Label(entity="a", metric="cpu", start=250_000, time=300_000, verdict="false_alarm")),
    said(Label(entity="a", start=250_000, time=310_000, verdict="new_normal")),
    said(Label(entity="b", metric="cpu", start=100_000, time=170_001, verdict="true")),
]


@st.composite
def arrivals(draw: st.DrawFn) -> tuple[list[Event], list[list[Event]]]:
    """What is true in the end, and batches in which it arrives, none later than allowed."""
    events = [e for e in windows(seed=draw(st.integers(0, 3))) if draw(st.integers(0, 19)) or e["window_start"] == 0]
    events += draw(st.lists(st.sampled_from(NOTICES), unique_by=lambda e: e.get("rule") or e.get("label")))
    late = draw(st.lists(st.integers(0, len(events) - 1), max_size=12, unique=True))
    coming = []
    for number, event in enumerate(events):
        delay = draw(st.integers(1, LATENESS)) if number in late else 0
        if delay and "entity" in event and draw(st.booleans()):  # a first revision came on time and was wrong
            coming.append((event["window_end"], number, event | {"mean": 500.0}))
            events[number] = event | {"revision": 1}
        coming.append((event["window_end"] + delay, number, events[number]))
    order = [event for *_, event in sorted(coming, key=lambda c: c[:2])]
    cuts = sorted(draw(st.lists(st.integers(0, len(order)), max_size=15)))
    batches = [order[a:b] for a, b in zip([0, *cuts], [*cuts, len(order)], strict=True)]
    return events, batches


def run(batches: list[list[Event]], emit: str = "all") -> Job:
    job, newest = Job(emit), NEVER
    for batch in batches:
        newest = max([newest, *(event["window_end"] for event in batch)])
        job.take(batch, newest - 1 if newest > NEVER else NEVER)
    job.take([], END_OF_TIME)
    return job


@settings(max_examples=4, deadline=None, suppress_health_check=list(HealthCheck))
@given(arrivals=arrivals(), emit=st.sampled_from(["all", "novel"]))
def test_verdicts_and_state_end_as_if_all_had_come_on_time(
    arrivals: tuple[list[Event], list[list[Event]]], emit: str
) -> None:
    events, batches = arrivals
    wanted, found = on_time(events, emit), run(batches, emit)
    assert found.late == 0
    final = found.final()
    if emit == "novel":  # what was taken back is said to be normal, what never was novel is not said
        final = final.join(wanted.final(), on=IDENTITY, how="semi", maintain_order="left")
        gone = found.final().join(wanted.final(), on=IDENTITY, how="anti")
        assert set(gone["kind"]) <= {"normal", "learning"}
    assert_frame_equal(final, wanted.final(), check_exact=True)
    believed, right = found.believed(), wanted.believed()
    assert believed.keys() == right.keys()
    for name, table in right.items():
        assert_frame_equal(believed[name], table, check_exact=True)


def test_a_late_revision_amends_its_verdict_the_joined_one_and_later_ones_with_the_next_revision() -> None:
    events = windows(20)
    job = Job()
    job.take(events, 20 * STEP)
    job.take([window("a", "cpu", 16, 400.0, revision=3)], 20 * STEP)
    changed = job.said[-1]
    own = changed.filter(pl.col("metric") == "cpu", pl.col("window_end") == 17 * STEP).row(0, named=True)
    assert (own["revision"], own["actual"], own["kind"]) == (3 * STEP, 400.0, "anomaly"), "3 steps after its end"
    assert changed.filter(pl.col("metric") == JOINED).height
    assert set(changed["entity"]) == {"a"}
    assert changed["window_end"].min() == 17 * STEP, "what was before is as it was"
    assert (changed["revision"] == (20 * STEP - changed["window_end"]).clip(1)).all()
    job.take([events[16 * len(SERIES)] | {"revision": 4}], 20 * STEP)
    back = job.said[-1]
    assert (back["revision"] == (20 * STEP - back["window_end"]).clip(1) + 1).all(), "at the same watermark: one more"
    job.take([], END_OF_TIME)
    assert_frame_equal(job.final(), on_time(events).final(), check_exact=True)


def test_a_window_later_than_the_horizon_goes_to_the_late_topic_and_changes_nothing() -> None:
    job = on_time(windows())
    before = job.believed()
    job.take([window("a", "cpu", 3, 400.0, revision=1)], END_OF_TIME)
    assert job.late == 1
    after = job.believed()
    assert after.keys() == before.keys()
    for name, table in before.items():
        assert_frame_equal(after[name], table, check_exact=True)


def test_what_is_kept_is_bounded() -> None:
    job = Job()
    sizes = []
    for number in range(60):
        events = [e for e in windows(60) if e["window_start"] == number * STEP]
        job.take(events, (number + 1) * STEP)
        sizes.append(len(job.segments.values))
    models = 5 * 3  # four tables and the worst verdicts: now, and in two snapshots
    assert max(sizes) <= 3 + models + 2 * HORIZON // STEP
    assert {*SCHEMA, "values", "clock", "metrics", "workload"} == set(job.said[-1].columns), (
        "what news say of how well a band is known, and the workload, are on top"
    )


@pytest.mark.parametrize("emit", ["all", "novel"])
def test_state_of_a_version_without_history_is_taken_over(emit: str) -> None:
    whole, old = on_time(windows(), emit), Job(emit)
    old.take([e for e in windows() if e["window_end"] <= 200_000], 200_000)
    state = ShardState(old.segments)
    state.notes.pop("history")
    state.save()
    old.take([e for e in windows() if e["window_end"] > 200_000], 300_000)
    old.take([window("a", "cpu", 25, 400.0, revision=1)], 300_000)
    old.take([next(e for e in windows() if e["window_start"] == 250_000) | {"revision": 2}], 300_000)
    old.take([], END_OF_TIME)
    final = old.final().join(whole.final(), on=IDENTITY, how="semi", maintain_order="left")
    assert_frame_equal(final, whole.final(), check_exact=True)
