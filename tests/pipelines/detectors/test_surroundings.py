"""With ``detector.emit = context`` the ordinary windows around incidents are written, and no others."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from engine.runtime.intake import KAFKA
from engine.spec.duration import END_OF_TIME, NEVER
from engine.spec.operator import Progress
from engine.state.segments import DictSegments, ShardState
from engine.testing import Driven
from engine.vectorized.build import build
from pipelines.contracts.records import Rule
from pipelines.contracts.settings import DetectorSettings, load
from pipelines.jobs.detectors.detect_operator import Detect
from pipelines.jobs.detectors.job import detector, log_detector
from pipelines.jobs.detectors.metrics.judging import Metrics
from pipelines.jobs.detectors.surroundings import Around
from tests.pipelines.detectors.test_late_windows import COLUMNS, HORIZON, IDENTITY, STEP, Event, arrivals, said, window
from tests.pipelines.detectors.test_operator import at, features, heartbeats

BEFORE, AFTER = 6 * STEP, 3 * STEP
REACH = BEFORE + HORIZON
STEPS = 60
ROOMY = Around(BEFORE, AFTER, REACH)
SCARCE = Around(BEFORE, AFTER, REACH, most=1)
"""A micro-batch writes earlier verdicts of a single series."""
DIVIDED = Around(BEFORE, AFTER, REACH, many=2)
"""What is kept is divided by machine as soon as it is two verdicts."""


@dataclass
class Job:
    """The detector's processor with state that lasts, and what it has written."""

    around: Around | None
    segments: DictSegments = field(default_factory=DictSegments)
    written: list[pl.DataFrame] = field(default_factory=list)
    watermark: int = NEVER

    def take(self, events: list[Event], now: int) -> None:
        settings = DetectorSettings(threshold=30.0)
        processor, state = build(Detect(settings, Metrics(HORIZON), self.around)), ShardState(self.segments)
        now = max(now, self.watermark)
        results = processor.process(pl.DataFrame(events, COLUMNS), state, Progress(self.watermark, now))
        state.save()
        self.watermark = now
        self.written += [results.records] if results.records.height else []

    def feed(self, batches: Iterable[list[Event]]) -> Job:
        newest = NEVER
        for batch in batches:
            newest = max([newest, *(event["window_end"] for event in batch)])
            self.take(batch, newest - 1 if newest > NEVER else NEVER)
        self.take([], END_OF_TIME)
        return self

    @property
    def final(self) -> pl.DataFrame:
        """The last revision of each verdict."""
        written = pl.concat(self.written).sort("revision", maintain_order=True)
        return written.unique(IDENTITY, keep="last").sort("window_end", "entity", "metric").drop("revision")


def around_incidents(every: pl.DataFrame) -> set[tuple[Any, ...]]:
    """Identities of the verdicts to write, straight from the rule: window by window, of all verdicts of a log."""
    rows, chosen = every.to_dicts(), set()
    for cause in rows:
        if cause["kind"] in ("normal", "learning") and cause["incident_state"] is None:
            continue
        told = cause["decided"] or cause["window_end"]
        onset = min(cause["since"] if cause["since"] is not None else cause["window_start"], cause["window_start"])
        first = max(onset - BEFORE, told - REACH)
        last = cause["window_end"] + (AFTER if cause["incident_state"] == "closed" else 0)
        chosen.add(tuple(cause[name] for name in IDENTITY))
        driving = [each["key"] for each in cause["influencers"] or []][:5] if cause["metric"] == "_machine" else []
        chosen |= {
            tuple(row[name] for name in IDENTITY)
            for row in rows
            if row["entity"] == cause["entity"]
            and row["metric"] in (cause["metric"], *driving)
            and first < row["window_end"] <= last
        }
    return chosen


def of(frame: pl.DataFrame) -> set[tuple[Any, ...]]:
    return set(frame.select(IDENTITY).rows())


def windows(seed: int) -> list[Event]:
    """Noise with spikes of one window, spikes of some windows, a shift for good, and gaps."""
    rng = np.random.default_rng(seed)
    series = [("a", "cpu"), ("a", "mem"), ("b", "cpu"), ("c", "cpu"), ("quiet", "cpu")]
    extra = np.zeros((len(series), STEPS))
    for row in range(len(series) - 1):
        start, length = int(rng.integers(20, STEPS)), int(rng.choice([1, 3, STEPS]))
        extra[row, start : start + length] = rng.choice([60.0, 20.0])
    return [
        window(entity, metric, n, float(rng.normal(50, 3)) + extra[row, n])
        for n in range(STEPS)
        for row, (entity, metric) in enumerate(series)
        if rng.random() > 0.02
    ]


@settings(max_examples=5, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    seed=st.integers(0, 30),
    cuts=st.lists(st.integers(0, 4 * STEPS), max_size=20),
    around=st.sampled_from([ROOMY, SCARCE, DIVIDED]),
)
def test_the_windows_around_incidents_are_written_whatever_the_micro_batches(
    seed: int, cuts: list[int], around: Around
) -> None:
    events = windows(seed)
    batches = [events[a:b] for a, b in zip([0, *sorted(cuts)], [*sorted(cuts), len(events)], strict=True)]
    every = Job(None).feed([events]).final
    found = Job(around).feed(batches)
    wanted = around_incidents(every)
    assert of(found.final) == wanted
    part = every.filter(pl.Series([row in wanted for row in every.select(IDENTITY).rows()]))
    assert_frame_equal(found.final, part, check_exact=True)
    whole = pl.concat(found.written).filter(pl.col("kind") != "absence")  # the end of time says these twice
    assert not whole.select(*IDENTITY, "revision").is_duplicated().any(), "nothing is written twice"


@settings(max_examples=3, deadline=None, suppress_health_check=list(HealthCheck))
@given(arrivals=arrivals(), around=st.sampled_from([ROOMY, SCARCE, DIVIDED]))
def test_after_late_windows_rules_and_labels_what_belongs_there_is_written_as_it_finally_is(
    arrivals: tuple[list[Event], list[list[Event]]], around: Around
) -> None:
    _, batches = arrivals
    every, job = Job(None).feed(batches).final, Job(around).feed(batches)
    found = job.final if job.written else every.clear()
    news = every.filter(pl.col("incident_state").is_not_null() | ~pl.col("kind").is_in(["normal", "learning"]))
    assert of(news) <= of(found)
    assert_frame_equal(found, every.join(found, on=IDENTITY, how="semi", maintain_order="left"), check_exact=True)


def test_a_series_that_was_quiet_shows_sixty_windows_before_the_onset_and_thirty_after_the_end() -> None:
    settings = load(**{"detector.emit": "context"})
    rng = np.random.default_rng(5)
    values = {n: {host: float(rng.normal(50, 3)) for host in ("a", "b")} for n in range(260)}
    for n in (180, 181, 182):
        values[n]["a"] = 150.0
    driven, found = Driven(detector(settings), 2), []
    for first in range(0, 260, 10):
        entries = [*features({n: values[n] for n in range(first, first + 10)}, first + 10), *heartbeats(at(first + 10))]
        rows = [(value, topic, p, first * 100 + i, time) for i, (topic, p, value, time) in enumerate(entries)]
        driven.kafka([pa.Table.from_pylist([dict(zip(KAFKA.names, row, strict=True)) for row in rows], KAFKA)])
    found = [row for row in driven.rows if row["revision"] == 0]
    assert {row["host.name"] for row in found} == {"a"}, "a quiet machine costs nothing"
    numbers = sorted((row["window_start"] - at(0)) // STEP for row in found)
    (over,) = [row for row in found if row.get("incident.state") == "closed"]
    last = (over["window_start"] - at(0)) // STEP
    assert 182 < last < 220
    assert numbers == list(range(120, last + 31))
    assert all(row["typical"] is not None and row["lower"] is not None for row in found), "a band can be plotted"


def test_earlier_windows_of_many_series_are_written_a_few_series_at_a_time_without_more_input() -> None:
    rng, job, every = np.random.default_rng(3), Job(SCARCE), Job(None)
    for n in range(50):
        value = 150.0 if n >= 40 else 50.0
        batch = [window(name, "cpu", n, float(rng.normal(value, 3))) for name in "abcde"]
        for each in (job, every):
            each.take(batch, (n + 1) * STEP)
        if n == 40:
            assert job.written[-1].filter(window_end=39 * STEP)["entity"].to_list() == ["a"]
            assert set(job.written[-1].filter(window_end=41 * STEP)["entity"]) == set("abcde"), "news does not wait"
    wanted = around_incidents(every.final)
    assert {row[2] // STEP for row in wanted if row[0] == "e"} == set(range(34, 50))
    assert of(job.final) == wanted


def test_a_series_that_the_setting_names_is_always_written() -> None:
    named = Around(BEFORE, AFTER, REACH, always=("x/*", "qui*/c?u"))
    found = Job(named).feed([windows(1)])
    every = Job(None).feed([windows(1)])
    mine = pl.col("entity") == "quiet", pl.col("metric") == "cpu"
    assert_frame_equal(found.final.filter(*mine), every.final.filter(*mine), check_exact=True)
    assert of(found.final.filter(~mine[0])) == {row for row in around_incidents(every.final) if row[0] != "quiet"}


@pytest.mark.parametrize("delay", [0, 3], ids=["in time", "late"])
def test_a_series_that_a_rule_names_is_written_while_the_rule_is_in_force(delay: int) -> None:
    rule = said(Rule(id="look", time=10 * STEP, end=30 * STEP, entity="qui*", metric="cpu", store=True))
    batches = [[] for _ in range(STEPS)]
    for event in windows(1):
        batches[event["window_start"] // STEP].append(event)
    batches[10 + delay].insert(0, rule)
    every, found = Job(None).feed(batches).final, Job(ROOMY).feed(batches).final
    start = pl.col("window_start")
    named = every.filter(entity="quiet", metric="cpu").filter((start >= 10 * STEP) & (start < 30 * STEP))
    assert named["rules"].to_list() == [["look"]] * named.height
    assert len(of(named) - around_incidents(every)) >= 10
    assert of(found) == of(named) | around_incidents(every)
    assert_frame_equal(found, every.join(found, on=IDENTITY, how="semi", maintain_order="left"), check_exact=True)


@pytest.mark.parametrize("around", [ROOMY, DIVIDED], ids=["whole", "divided"])
def test_another_value_of_the_setting_removes_what_was_kept(around: Around) -> None:
    job, plain = Job(around), Job(None)
    for each in (job, plain):
        each.take(windows(1)[:100], 24 * STEP)
    job.around = None
    for each in (job, plain):
        each.take(windows(1)[100:], 40 * STEP)
    assert job.segments.values.keys() == plain.segments.values.keys()


@pytest.mark.parametrize(("around", "logs"), [(ROOMY, 1), (DIVIDED, 2)], ids=["whole", "divided"])
def test_what_is_kept_is_bounded(around: Around, logs: int) -> None:
    job, sizes = Job(around), []
    for n in range(40):
        job.take([window(machine, "cpu", n, 50.0 + n % 7) for machine in "ab"], (n + 1) * STEP)
        kept = [name for name in job.segments.values if name.startswith("ordinary")]
        sizes.append(len(kept))
    assert len({name.split("/")[0] for name in kept}) == logs
    assert max(sizes) <= logs * (REACH // STEP + 1)
    assert len(sizes) > 3 * REACH // STEP


def test_on_a_large_site_an_incident_reads_what_is_kept_of_its_machine_and_not_of_the_others() -> None:
    job = Job(Around(BEFORE, AFTER, REACH, many=200))
    job.segments = read = Reads()
    for n in range(30):
        if n == 10:  # a small micro-batch: what was kept before there were many series must be found all the same
            job.take([window("m0", "cpu", n, 50.0 + n * 3 % 7)], n * STEP + 1)
        values = [150.0 if n == 29 and k == 0 else 50.0 + n * (k + 3) % 7 for k in range(1 if n < 5 else 200)]
        read.names.clear()
        job.take([window(f"m{k}", "cpu", n, v) for k, v in enumerate(values) if n != 10 or k], (n + 1) * STEP)
    written = pl.concat(job.written).filter(entity="m0")
    assert set(written["window_end"].to_numpy() // STEP) >= {24, 25, 26, 27, 28, 29, 30}
    kept = [name for name in read.values if name.startswith("ordinary")]
    mine = [name for name in read.names if name.startswith("ordinary")]
    assert 5 <= len(mine) <= REACH // STEP + 2 < len(kept) / 20


class Reads(DictSegments):
    """Segments that note which of them were read."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def get(self, name: str, digest: str = "") -> bytes | None:
        self.names.append(name)
        return super().get(name)


def test_windows_of_logs_do_not_slide_so_as_many_of_them_are_around_an_incident_as_of_metrics() -> None:
    sliding = load(**{"window.size": "10s", "window.every": "1s"})
    kept = {job.name: job.processor.around for job in (detector(sliding), log_detector(sliding))}  # type: ignore[attr-defined]
    assert {name: (each.before // 1000, each.after // 1000) for name, each in kept.items()} == {
        "detector": (60, 30), "log_detector": (600, 300),
    }  # fmt: skip
