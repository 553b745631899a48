"""Hostile rules and labels: each one that cannot be applied is a dead letter, and the jobs go on, also after a restart.

The same messages go to the running pipeline of tests/integration/test_rules.py.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import settings as hypothesis
from hypothesis import strategies as st
from typer.testing import CliRunner

from engine.formats.dead_letters import DeadLetter
from engine.formats.heartbeat import HEARTBEAT
from engine.runtime import reading
from engine.spec.decoder import Messages
from engine.spec.duration import NEVER, iso
from engine.spec.errors import NewnormalError
from engine.spec.operator import Progress
from engine.state.segments import DictSegments, ShardState
from pipelines.cli.label import app as label_app
from pipelines.cli.rule import app as rule_app
from pipelines.contracts import topics
from pipelines.contracts.records import Rule
from pipelines.contracts.settings import DetectorSettings, load
from pipelines.jobs.detectors.control_messages import ControlMessages
from pipelines.jobs.detectors.correction_journal import IDENTITY
from pipelines.jobs.detectors.detect_operator import Detect, DetectProcessor
from pipelines.jobs.detectors.job import control_messages
from pipelines.jobs.detectors.logs.judging import Logs
from pipelines.jobs.detectors.metrics.judging import Metrics
from pipelines.query.control_topics import checked
from tests.pipelines.detectors.hostile import (
    BEYOND,
    HOSTILE_LABELS,
    HOSTILE_RULES,
    LABELS,
    RULES,
    STEP,
    T0,
    label,
    rule,
)


def read(topic: str, values: list[bytes | None]) -> tuple[pl.DataFrame, list[DeadLetter]]:
    """What a job gets of messages of a topic, and its dead letters."""
    source, n = control_messages(load()), len(values)
    found = Messages(topic, 0, pa.array(values, pa.binary()), np.arange(n), np.full(n, T0 + STEP))
    table, _, dead = reading.read(source, found, "detector")
    frame = pl.from_arrow(table)
    assert isinstance(frame, pl.DataFrame)
    return frame, dead


def features(windows: range) -> pl.DataFrame:
    rows = [
        {
            "entity": entity, "metric": metric, "kind": "gauge", "window_start": T0 + n * STEP,
            "window_end": T0 + (n + 1) * STEP, "count": 1, "mean": float(n % 7), "p95": 1.0, "rate": None,
            "revision": 0,
        }
        for n in windows
        for entity in ("a", "b")
        for metric in ("cpu", "mem")
    ]  # fmt: skip
    return pl.DataFrame(rows, schema_overrides={"rate": pl.Float64, "revision": pl.Int32})


def log_features(windows: range) -> pl.DataFrame:
    rows = [
        {
            "entity": entity, "metric": f"log.template.{template}", "window_start": T0 + n * STEP,
            "window_end": T0 + (n + 1) * STEP, "count": 3, "revision": 0, "template": template,
            "example": "one", "severity": 6, "kind": "count",
        }
        for n in windows
        for entity in ("a", "b")
        for template in ("x", "y")
    ]  # fmt: skip
    return pl.DataFrame(rows, schema_overrides={"revision": pl.Int32})


DETECTOR = DetectProcessor(Detect(DetectorSettings(), Metrics(600_000)))
LOG_DETECTOR = DetectProcessor(Detect(DetectorSettings(), Logs(STEP)))


def run_both(said: pl.DataFrame) -> list[int]:
    """Both detectors hear this between windows that they judge, and are restarted after; windows judged by each."""
    found = []
    for processor, windows in ((DETECTOR, features), (LOG_DETECTOR, log_features)):
        state, judged = ShardState(DictSegments()), set[tuple[object, ...]]()
        news = said.select("window_end", "rule", "label")
        for n, batch in enumerate((windows(range(3)), news, windows(range(3, 6)), windows(range(6, 8)))):
            before, now = (NEVER if n == 0 else T0 + STEP * (n + 2)), T0 + STEP * (n + 3 if n < 3 else 8)
            both = pl.concat([batch, news.clear()], how="diagonal_relaxed")
            verdicts = processor.process(both, state, Progress(before, now)).records
            judged |= set(verdicts.select(IDENTITY).rows()) if verdicts.height else set()
            state.save()
            state = ShardState(state.segments)  # as a restart finds it
        found.append(len(judged))
    return found


WITHOUT = run_both(read(topics.RULES, [HEARTBEAT])[0])


@pytest.mark.parametrize("value", HOSTILE_RULES, ids=lambda v: repr(v)[:60])
def test_a_rule_that_cannot_be_applied_is_one_dead_letter_with_a_short_reason(value: bytes | None) -> None:
    frame, dead = read(topics.RULES, [rule(id="good"), value, rule(id="too")])
    assert [json.loads(text)["id"] for text in frame["rule"]] == ["good", "too"]
    assert [letter.offset for letter in dead] == [1]
    assert 5 < len(dead[0].reason) <= 1_000
    assert len(dead[0].to_json()) < 10_000


@pytest.mark.parametrize("value", HOSTILE_LABELS, ids=lambda v: repr(v)[:60])
def test_a_label_that_cannot_be_applied_is_one_dead_letter_with_a_short_reason(value: bytes | None) -> None:
    frame, dead = read(topics.LABELS, [label(metric="good"), value, label(metric="too")])
    assert [json.loads(text)["metric"] for text in frame["label"]] == ["good", "too"]
    assert [letter.offset for letter in dead] == [1]
    assert 5 < len(dead[0].reason) <= 1_000
    assert len(dead[0].to_json()) < 10_000


@pytest.mark.parametrize(
    ("value", "telling"),
    [
        (rule(**{"host.name": "?" * 20_000}), "host.name: .*512 characters"),
        (rule(skipresult=True), "'skipresult' is not a field of rule: did you mean skip_result"),
        (rule(**{"host": "a"}), "'host' is not a field of rule: did you mean host.name"),
        (json.dumps({f"field{i}": i for i in range(3_000)}).encode(), "id is missing.*and 29.. more"),
        (None, "tombstone"),
        (rule(**{"@timestamp": T0 // 1000}), "looks like seconds; epoch milliseconds are expected"),
        (rule(timezone="posix/Europe/Berlin"), "timezone: .*not a time zone.*Europe/Stockholm"),
        (rule(note="n" * 1_000_000), "100.... bytes.*65536"),
    ],
)
def test_the_reason_says_what_is_wrong_and_what_is_accepted(value: bytes | None, telling: str) -> None:
    (letter,) = read(topics.RULES, [value])[1]
    assert pl.Series([letter.reason]).str.contains(telling).item(), letter.reason


@pytest.mark.parametrize(("topic", "hostile"), [(topics.RULES, HOSTILE_RULES), (topics.LABELS, HOSTILE_LABELS)])
def test_both_detectors_go_on_judging_whatever_is_in_the_topic(topic: str, hostile: list[bytes | None]) -> None:
    frame, dead = read(topic, hostile)
    assert len(dead) == len(hostile)
    assert run_both(frame) == WITHOUT
    assert all(WITHOUT)


def test_a_rule_that_an_older_version_kept_in_its_state_and_this_one_refuses_does_no_harm() -> None:
    state = ShardState(DictSegments())
    poison, good = (
        [T0, rule(id=name, **{"host.name": glob}).decode()] for name, glob in (("p", "?" * 9_999), ("g", "*"))
    )
    state.notes["notices"] = {"rules": [poison, good], "labels": [[T0, label(metric="m" * 9_999).decode()]]}
    kept = ControlMessages(state)
    assert [version.rule.id for version in kept.in_force()] == ["g"]
    assert kept.labels == []


def test_of_two_jobs_that_read_the_rules_one_writes_the_dead_letters() -> None:
    n = len(HOSTILE_RULES)
    found = Messages(topics.RULES, 0, pa.array(HOSTILE_RULES, pa.binary()), np.arange(n), np.full(n, T0))
    assert reading.read(control_messages(load(), reports=False), found, "log_detector")[2] == []


@hypothesis(deadline=None, max_examples=20)
@given(
    said=st.lists(RULES | st.binary(max_size=9), min_size=1, max_size=6),
    labelled=st.lists(LABELS | st.binary(max_size=9), min_size=1, max_size=6),
)
def test_any_message_is_applied_or_refused_and_windows_are_judged_as_many_as_ever(
    said: list[bytes], labelled: list[bytes]
) -> None:
    frames = []
    for topic, values in ((topics.RULES, said), (topics.LABELS, labelled)):
        frame, dead = read(topic, list(values))
        assert frame.height + len({letter.offset for letter in dead}) == len(values) - values.count(HEARTBEAT)
        frames.append(frame)
    assert run_both(pl.concat(frames)) == WITHOUT


@hypothesis(deadline=None, max_examples=60)
@given(value=RULES)
def test_the_command_refuses_what_the_job_would_refuse_and_no_more(value: bytes) -> None:
    dead, fields = read(topics.RULES, [value])[1], json.loads(value)
    assume(None not in fields.values())  # to the commands an option that is not given
    try:
        checked(Rule, fields, load(), T0 + STEP)
    except NewnormalError as error:
        assert [letter.code for letter in dead] == [error.code]
    else:
        assert dead == []


@pytest.mark.parametrize(
    ("app", "arguments", "code", "telling"),
    [
        (rule_app, ["add", "r", "--skip-result", "--entity", "?" * 20_000], "RULE_INVALID", "512 characters"),
        (rule_app, ["add", "r", "--skip-result", "--note", "n" * 1_000_000], "RULE_INVALID", "bytes"),
        (rule_app, ["add", "r", "--skip-result", "--timezone", "Factory"], "RULE_INVALID", "not a time zone"),
        (rule_app, ["add", "r", "--skip-result", "--at", "+2h"], "TIME_AHEAD", "1m"),
        (rule_app, ["add", "r", "--skip-result", "--at", "1999-01-01"], "TIME_TOO_EARLY", "2000-01-01"),
        (rule_app, ["add", "r\udcff", "--skip-result"], "RULE_INVALID", "UTF-8"),
        (label_app, ["add", "true", "a" * 600], "LABEL_INVALID", "512 characters"),
        (label_app, ["add", "true", "a", "--at", "+2h"], "TIME_AHEAD", "1m"),
        (label_app, ["add", "true", "a", "--until", "-2h"], "LABEL_INVALID", "event.end"),
    ],
)
def test_the_commands_refuse_the_same_before_anything_is_written(
    app: Any, arguments: list[str], code: str, telling: str
) -> None:
    error = CliRunner().invoke(app, arguments).exception
    assert isinstance(error, NewnormalError), repr(error)
    assert error.code == code
    assert telling in str(error)


def test_instants_that_are_accepted_can_be_shown() -> None:
    end = Rule.from_json(rule(**{"event.end": BEYOND - 1})).end
    assert iso(end or 0) == "9999-12-31T23:59:59.999Z"
