"""The jobs of the chain go on in another number of shards as if they had always had it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

from engine.runtime.intake import KAFKA
from engine.runtime.rescale import rescaled
from engine.spec.job import Job
from engine.state.segments import DictSegments
from engine.testing import Driven
from engine.vectorized.build import build
from pipelines.contracts import topics
from pipelines.contracts.records import Label, Rule
from pipelines.contracts.settings import load
from pipelines.jobs.chain import JOBS
from pipelines.jobs.detectors.job import detector, log_detector
from pipelines.jobs.templates.job import templates
from tests.pipelines.detectors.test_operator import Entry, at, features, heartbeats
from tests.pipelines.site import START, lines, messages

HOSTS = [f"h{number}" for number in range(12)]
CHANGES = ((4, 2), (1, 4))


@dataclass
class Moving:
    """A job that is run in one number of shards, and then in others."""

    job: Job
    shards: int
    driven: Driven = field(init=False)
    rows: list[dict[str, Any]] = field(default_factory=list)
    late: list[dict[str, Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.driven = Driven(self.job, self.shards)

    def take(self, tasks: list[pa.Table]) -> None:
        """Runs one micro-batch."""
        self.driven.kafka(tasks)
        self.rows += self.driven.written[-1].rows
        self.late += self.driven.written[-1].late

    def rescale(self, shards: int) -> None:
        """Goes on in another number of shards."""
        segments = rescaled(self.job, [state.values for state in self.driven.states], shards)
        states = [DictSegments() for _ in range(shards)]
        for state, values in zip(states, segments, strict=True):
            state.values = values
        self.driven = Driven(self.job, shards, states, offset=self.driven.offset)


def said(rows: list[dict[str, Any]]) -> list[str]:
    """Verdicts or features as texts that can be compared; numbers to nine digits."""
    return sorted(json.dumps(_rounded(row), sort_keys=True, default=str) for row in rows)


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _rounded(inner) for name, inner in value.items() if name != "event.ingested"}
    if isinstance(value, list):
        return [_rounded(inner) for inner in value]
    return float(f"{value:.9g}") if isinstance(value, float) else value


def metrics() -> Iterator[list[Entry]]:
    """Windows of twelve machines, with a rule, a label, spikes, a machine that goes silent, and late windows."""
    rng = np.random.default_rng(0)
    values = {n: {host: float(rng.normal(50, 3)) for host in HOSTS} for n in range(160)}
    values[80] |= dict.fromkeys(HOSTS, 90.0)
    values[125] |= dict.fromkeys(HOSTS, 150.0)
    for n in range(110, 160):
        values[n].pop("h5")
    rule = Rule(id="quiet", time=at(100), end=at(150), entity="h[01]", skip_result=True)
    label = Label(entity="h2", metric="cpu", start=at(80), time=at(90), verdict="false_alarm")
    yield [(topics.RULES, 1, rule.to_json(), at(90)), (topics.LABELS, 3, label.to_json(), at(90)), *heartbeats(at(90))]
    for start in range(0, 160, 20):
        some = {n: values[n] for n in range(start, start + 20)}
        yield [*features(some, start + 20), *heartbeats(at(start + 20))]
        if start >= 100:
            yield features({start + 5: {"h3": 500.0}}, start + 20, revision=1)


def _of_metrics(job: Job, shards: int, to: int | None) -> Moving:
    moving, offset = Moving(job, shards), 0
    batches = list(metrics())
    for number, entries in enumerate(batches):
        if to and number == len(batches) * 2 // 3:
            moving.rescale(to)
        moving.take(tables(entries, offset))
        offset += len(entries)
    return moving


def tables(entries: list[Entry], offset: int) -> list[pa.Table]:
    """One micro-batch of messages, whose offsets begin with a number."""
    rows = [(value, topic, p, offset + i, arrived) for i, (topic, p, value, arrived) in enumerate(entries)]
    return [pa.Table.from_pylist([dict(zip(KAFKA.names, row, strict=True)) for row in rows], schema=KAFKA)]


def _detector(emit: str) -> Job:
    return detector(load(**{"detector.emit": emit}))


@cache
def _whole_of_metrics(emit: str) -> Moving:
    """In one shard all the time, which several tests compare with."""
    return _of_metrics(_detector(emit), 1, None)


@pytest.mark.parametrize(
    ("emit", "least", "before", "after"), [*(("all", 1500, *change) for change in CHANGES), ("context", 1000, 4, 2)]
)
def test_the_detector_of_metrics_goes_on(emit: str, least: int, before: int, after: int) -> None:
    whole, moved = _whole_of_metrics(emit), _of_metrics(_detector(emit), before, after)
    assert len(whole.rows) > least
    assert any(row["revision"] for row in whole.rows)
    assert said(moved.rows) == said(whole.rows)
    assert said(moved.late) == said(whole.late)


def _of_logs(make: Callable[[], Job], frame: pl.DataFrame, shards: int, to: int | None) -> Moving:
    moving = Moving(make(), shards)
    for number in range(10):
        if to and number == 6:
            moving.rescale(to)
        moving.take(logs_batch(frame, number))
    return moving


def logs_batch(frame: pl.DataFrame, number: int) -> list[pa.Table]:
    """One micro-batch of log lines: those of two minutes."""
    step = 120_000
    low = START + number * step
    part = frame.filter((pl.col("time") >= low) & (pl.col("time") < low + step))
    return messages(part, low + step, number * 10)


@pytest.mark.parametrize(("before", "after"), [(2, 4)])
def test_the_miner_of_templates_goes_on(before: int, after: int) -> None:
    """Each new shard has the templates of its source; shards that become one have those of all of them."""
    frame = lines(20)
    whole = _of_logs(lambda: templates(load()), frame, before, None)
    moved = _of_logs(lambda: templates(load()), frame, before, after)
    assert len(whole.rows) > 500
    assert said(moved.rows) == said(whole.rows)


def counted_logs() -> list[list[pa.Table]]:
    """The input of the detector of logs in three micro-batches: heartbeats, and counts by template in two parts."""
    counted = _of_logs(lambda: templates(load()), lines(20), 1, None).driven
    beats = [(value, topic, p, 0, arrived) for topic, p, value, arrived in heartbeats(START + 10**9)]
    found = [m for _, m in counted.messages]
    rows = [(m.value, m.topic, m.partition, n, START + 10**8) for n, m in enumerate(found)]
    parts = (beats, rows[: len(rows) // 2], rows[len(rows) // 2 :])
    return [
        [pa.Table.from_pylist([dict(zip(KAFKA.names, row, strict=True)) for row in part], schema=KAFKA)]
        for part in parts
    ]


def kinds(moving: Moving) -> set[tuple[str, int, str]]:
    """Machine, window and kind of each verdict."""
    return {(row["host.name"], row["window_start"], row["kind"]) for row in moving.rows}


def test_the_detector_of_logs_goes_on() -> None:
    batches = counted_logs()

    def run(shards: int, to: int | None) -> Moving:
        moving = Moving(log_detector(load(**{"detector.emit": "all"})), shards)
        for number, batch in enumerate(batches):
            if to and number == 2:
                moving.rescale(to)
            moving.take(batch)
        return moving

    whole, moved = run(2, None), run(2, 4)
    assert len(whole.rows) > 100
    assert kinds(moved) == kinds(whole)


def test_every_operator_of_the_chain_is_tested_here() -> None:
    own = {kind for kind in build.registry if kind.__module__.startswith("pipelines.")}
    names = {kind.__name__ for kind in own}
    elsewhere = {"GroupNovelties"}  # tests/pipelines/incidents/test_rescaling.py
    assert names - elsewhere == {"Detect", "MineTemplates"}, "a new operator needs a test of its own here"
    assert {"detector", "log_detector", "templates"} <= set(JOBS)
