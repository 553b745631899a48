"""`newnormal rule try` and a replay under the rule: what it names goes and comes, and nothing else.

Of joined verdicts the trial says how many a replay may judge otherwise.

The values go through real Kafka, Spark and Elasticsearch, and `detector.emit = "context"` stores few quiet windows.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from typing import Any

import numpy as np
import orjson
import pytest
from confluent_kafka import Producer

from engine.spec.duration import iso
from pipelines.contracts import topics
from pipelines.contracts.records import Rule
from pipelines.contracts.settings import Settings
from pipelines.evaluation.rule_trial.stored import stored
from pipelines.evaluation.rule_trial.trial import Trial, trial
from pipelines.query.control_topics import rules_over_time
from tests.integration.conftest import Pipeline

pytestmark = [pytest.mark.servers, pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(1200)]

STEP, WINDOWS = 10_000, 500
ALARMS = {"anomaly", "state_change", "new_normal", "absence"}
METRICS = ("cpu", "mem", "latency")
OPTIONS = {
    "muted": ["--skip-result"],
    "one-metric": ["--metric", "cpu", "--skip-result"],
    "large": ["--metric", "mem", "--above", "70", "--skip-result"],
    "upwards": ["--only", "up"],
    "least": ["--metric", "c*", "--min-change", "20"],
    "share": ["--metric", "latency", "--min-change-share", "40%"],
    "limit": ["--metric", "cpu", "--above", "55", "--report"],
    "low": ["--metric", "mem", "--below", "46", "--report"],
    "both": ["--metric", "latency", "--above", "56", "--report", "--only", "up", "--min-change", "3"],
}
"""A rule for each machine; each is named as its machine."""

Window = tuple[str, str, int]


def values(machine: int) -> dict[str, np.ndarray]:
    """Spikes up and down, small and large, of some windows each, and in one metric a change that lasts."""
    rng, found = np.random.default_rng(machine), {}
    for metric in METRICS:
        course = rng.normal(50, 2, WINDOWS)
        for at in rng.integers(60, WINDOWS - 10, 10):
            course[at : at + int(rng.integers(1, 4))] += rng.choice([-30.0, -14.0, 14.0, 25.0, 60.0])
        found[metric] = course
    found["mem"][350:] += rng.choice([0.0, 25.0])
    return found


def send(pipeline: Pipeline, start: int) -> None:
    """Writes a sample for each window, and one much later, with which all windows are over."""
    producer = Producer({"bootstrap.servers": pipeline.settings.kafka.bootstrap, "linger.ms": 20})
    topic = pipeline.settings.topic(topics.RAW_JSON)
    courses = {name: values(number) for number, name in enumerate(OPTIONS)}
    for window in range(WINDOWS + 30):
        for name, course in courses.items():
            for metric in METRICS:
                value = float(course[metric][window]) if window < WINDOWS else 50.0
                sample = {
                    "@timestamp": start + window * STEP + 1, "host.name": name, "metric": metric, "value": value,
                    "kind": "gauge",
                }  # fmt: skip
                producer.produce(topic, orjson.dumps(sample), partition=0)
        producer.poll(0)
    assert producer.flush(60) == 0


def alarms(verdicts: Iterable[dict[str, Any]]) -> set[Window]:
    return {(v["host.name"], v["metric"], v["window_start"]) for v in verdicts if v["kind"] in ALARMS}


def tried(rule: Rule, settings: Settings, start: int, end: int) -> Trial:
    return trial(rule, start, end, stored(rule, start, end, settings), rules_over_time(settings), [])


def test_a_trial_names_exactly_what_goes_and_comes_in_a_replay_under_the_rules(pipeline: Pipeline) -> None:
    start = (int(time.time() * 1000) - 6_000_000) // STEP * STEP
    end = start + WINDOWS * STEP
    bounds = ("--from", iso(start), "--until", iso(end))
    pipeline.environment["NEWNORMAL_DETECTOR__EMIT"] = "context"
    detector = pipeline.settings.detector.model_copy(update={"emit": "context"})
    settings = pipeline.settings.model_copy(update={"detector": detector})
    send(pipeline, start)
    pipeline.command("run", "--until", "now", seconds=600)
    assert pipeline.all_indexed()
    before = alarms(pipeline.verdicts())
    assert len(before) > 60

    said: dict[str, Trial] = {}
    for name, options in OPTIONS.items():
        given = [name, "--entity", name, *options]
        figures = json.loads(pipeline.command("rule", "try", *given, *bounds, "--json"))
        rule = Rule.model_validate({**figures["rule"], "@timestamp": start})
        said[name] = found = tried(rule, settings, start, end)
        assert (figures["removed"]["windows"], figures["added"]["windows"]) == found.windows
        assert {(e["entity"], e["metric"]) for e in figures["examples"]} <= {(name, m) for m in (*METRICS, "_machine")}
    for name, options in OPTIONS.items():
        pipeline.command("rule", "add", name, "--entity", name, *options, *bounds, "--at", iso(start))
    pipeline.command("replay", "--as", "ruled", "--until", "now", seconds=600)
    after = alarms(pipeline.verdicts(f"{topics.NOVELTIES}-ruled"))

    wrong: dict[str, Any] = {}
    for name, found in said.items():
        windows = found.changed.filter(found.changed["window_start"] < end)
        named = {out: {tuple(row[:3]) for row in windows.rows() if row[4] == out} for out in ("removed", "added")}
        went, came = ({window for window in some if window[0] == name} for some in (before - after, after - before))
        left = {w for w in (went | came) - named["removed"] - named["added"] if w[1] == "_machine"}
        joined = left if found.undecided else set()  # a metric that is muted is none of its machine's
        assert len(joined & came) <= found.undecided, name
        unlike = {"went": went - joined - named["removed"], "stayed": named["removed"] - went}
        unlike |= {"came": came - joined - named["added"], "missed": named["added"] - came}
        if any(unlike.values()):
            wrong[name] = {key: sorted(some)[:5] for key, some in unlike.items() if some}
    assert not wrong, json.dumps(wrong, indent=1)
    assert {out for found in said.values() for out in found.changed["outcome"]} == {"removed", "added"}
