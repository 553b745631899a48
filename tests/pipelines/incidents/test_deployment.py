"""A deployment, from features of metrics and counts of log lines to the incident, through both detectors."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import zip_longest
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from engine.columns.partitioning import crc32
from engine.formats import columnar
from engine.formats.heartbeat import HEARTBEAT
from engine.runtime.messages import Message
from engine.spec.record import Record
from engine.testing import Driven
from pipelines.contracts import topics
from pipelines.contracts.records import Features, Incident, LogFeatures
from pipelines.contracts.settings import load
from pipelines.jobs.detectors.job import detector, log_detector
from tests.pipelines.incidents.cases import STEP, T0, Feed
from tests.pipelines.test_rescaling import tables

MACHINES = ("a", "b", "c", "d")
WINDOWS, DEPLOYED, QUIET = 190, 110, 140
"""Numbers of windows: of all; of the change of machine a's metrics; of that of b's, about which its log is quiet."""
LINE, TEMPLATE = "release 2.4.1 of shop was started", "deploy release <n> of shop was started"
METRICS = ("cpu", "disk", "load", "mem", "net")
"""As many as are worth an incident whatever their scores."""

STATISTICS = ("mean", "std", "min", "max", "last", "p50", "p95", "p99")


def _place(window: int) -> dict[str, Any]:
    return {"window_start": T0 + window * STEP, "window_end": T0 + (window + 1) * STEP, "revision": 0}


def _metrics() -> list[dict[str, Any]]:
    rng, rows = np.random.default_rng(3), []
    changes = {"a": DEPLOYED, "b": QUIET}
    for window in range(WINDOWS):
        for machine in MACHINES:
            level = 80.0 if window >= changes.get(machine, WINDOWS) else 40.0
            for metric in METRICS:
                value = dict.fromkeys(STATISTICS, level + float(rng.normal(0, 2)))
                rows.append({"entity": machine, "metric": metric, "kind": "gauge", "count": 1} | _place(window) | value)
    return rows


def _logs(deployed: int) -> list[dict[str, Any]]:
    rng, rows = np.random.default_rng(4), []
    for window in range(WINDOWS):
        for machine in MACHINES:
            lines = {"get": int(rng.poisson(20)), "put": int(rng.poisson(8))}
            lines |= {"deploy": 1} if (machine, window) == ("a", deployed) else {}
            row = {"entity": machine, "kind": "count", "severity": 6} | _place(window)
            rows.append(row | {"metric": "log.severity.informational", "count": sum(lines.values())})
            for name, count in lines.items():
                text = (TEMPLATE, LINE) if name == "deploy" else (f"app {name} <n>", f"{name} {window}")
                named = {"metric": f"log.template.{name}", "count": count, "template": text[0], "example": text[1]}
                rows += [row | named] if count else []
    return rows


def _news(job: Driven, topic: str, record: type[Record], rows: list[dict[str, Any]], news: str) -> list[Message]:
    """The messages of a topic of news that a detector writes: one a partition and micro-batch of ten windows."""
    count = load().kafka.partitions
    beside = (topics.RULES, topics.LABELS, topics.CHANGES)
    said = [(name, p, HEARTBEAT, T0 + WINDOWS * STEP) for name in beside for p in range(count)]
    for number, until in enumerate(range(T0 + 10 * STEP, T0 + WINDOWS * STEP + 1, 10 * STEP)):
        parts: list[list[dict[str, Any]]] = [[] for _ in range(count)]
        for row in rows:
            if until - 10 * STEP < row["window_end"] <= until:
                parts[crc32(row["entity"]) % count].append(row)
        schema = record.arrow_schema()
        entries = [
            (topic, p, columnar.encode(pa.Table.from_pylist(part, schema=schema), until), until)
            for p, part in enumerate(parts)
        ]
        job.kafka(tables([*entries, *said], number * 100))
    return [message for _, message in job.messages if message.topic == news]


def _grouped(messages: Iterable[Message], at_once: int) -> list[Incident]:
    """The last incidents after micro-batches of so many messages."""
    feed, every = Feed(), list(messages)
    for first in range(0, len(every), at_once):
        feed.messages(every[first : first + at_once])
    return [each.model_copy(update={"revision": 0}) for each in feed.standing]


@pytest.fixture(scope="module")
def of_metrics() -> tuple[Driven, list[Message]]:
    job = Driven(detector(load()), 2)
    return job, _news(job, topics.FEATURES, Features, _metrics(), topics.NEWS)


def _of_logs(deployed: int = DEPLOYED, **settings: Any) -> list[Message]:
    job = Driven(log_detector(load(**settings)), 2)
    return _news(job, topics.LOG_FEATURES, LogFeatures, _logs(deployed), topics.LOG_NEWS)


def _incident_of(machine: str, found: list[Incident], onset: int) -> Incident:
    own = [each for each in found if each.machines[0].entity == machine]
    (one,) = [each for each in own if abs(each.start - _at(onset)) <= 3 * STEP]
    return one


def _at(window: int) -> int:
    return T0 + window * STEP


@pytest.mark.parametrize("emit", ["context", "novel", "all"])
def test_a_change_of_state_names_the_line_of_the_deployment_and_one_with_a_quiet_log_names_none(
    of_metrics: tuple[Driven, list[Message]], emit: str
) -> None:
    job, metrics = of_metrics
    turned = [row for row in job.rows if row["kind"] == "state_change" and row["host.name"] == "a"]
    assert {row["since"] for row in turned} == {_at(DEPLOYED)}
    found = _grouped([*metrics, *_of_logs(**{"detector.emit": emit})], 4)
    deployed, quiet = _incident_of("a", found, DEPLOYED), _incident_of("b", found, QUIET)
    (change,) = deployed.log_changes
    assert (change.entity, change.since, change.template, change.example) == ("a", _at(DEPLOYED), TEMPLATE, LINE)
    assert deployed.message.endswith(f'; the log of a changed: "{TEMPLATE}"'), "messages are sent to others: no line"
    assert quiet.log_changes == [] and "log" not in quiet.message


def test_lines_that_come_twenty_seconds_after_the_change_explain_it_and_lines_of_ten_minutes_before_do_not(
    of_metrics: tuple[Driven, list[Message]],
) -> None:
    _, metrics = of_metrics
    later = _incident_of("a", _grouped([*metrics, *_of_logs(DEPLOYED + 2)], 4), DEPLOYED)
    assert [(change.example, change.since) for change in later.log_changes] == [(LINE, _at(DEPLOYED + 2))]
    before = _incident_of("a", _grouped([*metrics, *_of_logs(DEPLOYED - 60)], 4), DEPLOYED)
    assert before.log_changes == []


def test_the_incidents_are_the_same_however_the_news_of_metrics_and_logs_interleave(
    of_metrics: tuple[Driven, list[Message]],
) -> None:
    _, metrics = of_metrics
    logs = _of_logs()
    once = _grouped([*logs, *metrics], len(logs) + len(metrics))
    assert once[0].log_changes
    half = len(metrics) // 2
    alternating = [message for pair in zip_longest(metrics, logs) for message in pair if message is not None]
    for mixed in ([*logs, *metrics], [*metrics, *logs], [*metrics[:half], *logs, *metrics[half:]], alternating):
        for at_once in (3, 16):
            assert _grouped(mixed, at_once) == once
