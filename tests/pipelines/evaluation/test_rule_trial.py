"""What a rule is said to have removed and added is what the detector gives with the rule from the first window on."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import polars as pl
import pytest

from pipelines.cli.rule_trial import trial_lines
from pipelines.contracts.globs import matches
from pipelines.contracts.records import Incident, Rule
from pipelines.contracts.records.incident import AffectedSeries
from pipelines.contracts.settings import DetectorSettings
from pipelines.evaluation.comparison.verdicts import SCHEMA
from pipelines.evaluation.rule_trial.past import only_teaches
from pipelines.evaluation.rule_trial.stored import Stored, _of_rule
from pipelines.evaluation.rule_trial.trial import Trial, trial
from pipelines.evaluation.truth import CALM, Span
from pipelines.jobs.detectors.metrics.detection import Detection
from pipelines.jobs.detectors.rules_in_force import RuleInForce
from pipelines.jobs.detectors.worst import last_revisions

STEP, WINDOWS = 10_000, 600
END = WINDOWS * STEP
ALARMS = ("anomaly", "state_change", "new_normal", "absence")


def values(seed: int) -> pl.DataFrame:
    """Two machines with two metrics each: spikes both up and down, small and large, and a change that lasts."""
    rng, rows = np.random.default_rng(seed), []
    for entity in ("a", "b"):
        for metric in ("cpu", "mem"):
            course = rng.normal(50, 2, WINDOWS)
            for _ in range(8):
                at = int(rng.integers(60, WINDOWS - 4))
                course[at : at + int(rng.integers(1, 4))] += rng.choice([-30.0, -14.0, 14.0, 25.0, 60.0])
            course[int(rng.integers(300, 500)) :] += rng.choice([0.0, 25.0])
            rows += [(entity, metric, i * STEP, (i + 1) * STEP, float(value)) for i, value in enumerate(course)]
    return pl.DataFrame(rows, ["entity", "metric", "window_start", "window_end", "value"], orient="row")


def judged(frame: pl.DataFrame, *rules: RuleInForce) -> pl.DataFrame:
    """The final verdicts of the detector under some rules, with the columns that a trial reads."""
    detection = Detection(DetectorSettings())
    verdicts = last_revisions(detection.process(frame, detection.new_state(), rules)[0])
    verdicts = verdicts.with_columns(message=pl.lit(None, pl.String), details=pl.lit(None, pl.String))
    return verdicts.select(pl.col(name).cast(kind) for name, kind in SCHEMA.items()).sort(
        "entity", "metric", "window_end"
    )


def alarm_windows(verdicts: pl.DataFrame) -> set[tuple[str, str, int]]:
    own = verdicts.filter(pl.col("kind").is_in(ALARMS))
    return set(own.select("entity", "metric", "window_start").rows())


def outcomes(*sides: pl.DataFrame) -> tuple[int, int]:
    """How many alarms only the first side has, and only the second: reckoned one by one from final verdicts.

    What lies in one incident, or fewer than `CALM` windows apart, is one alarm.
    """
    spans: dict[tuple[str, str], list[tuple[int, int, int | None]]] = {}
    for side, verdicts in enumerate(sides):
        for row in verdicts.iter_rows(named=True):
            news, state, since, start = (
                (row["kind"] in ALARMS),
                row["incident_state"],
                row["since"],
                row["window_start"],
            )
            begin = min(start, since) if state and since is not None else start
            own = spans.setdefault((row["entity"], row["metric"]), [])
            if news or state == "open":
                own.append((begin, row["window_end"], side if news else None))
            elif state == "closed" and since is not None:
                own.append((begin, start, None))
    found: list[set[int | None]] = []
    for series in spans.values():
        reach = -END
        for begin, end, whose in sorted(series, key=lambda span: span[:2]):
            if begin - reach >= CALM * STEP:
                found.append(set())
            reach = max(reach, end)
            found[-1] |= {whose} - {None}
    return found.count({0}), found.count({1})


def rule(**fields: Any) -> Rule:
    return Rule(id="tried", time=0, **fields)


def tried(given: Rule, verdicts: pl.DataFrame, *others: RuleInForce, **more: Any) -> Trial:
    known = Stored(verdicts, more.get("incidents", []), STEP, None, values_needed=False)
    return trial(given, 0, END, known, others, more.get("spans", []))


RULES = {
    "maintenance of a machine": rule(entity="a", skip_result=True),
    "one metric": rule(metric="c*", skip_result=True),
    "large values": rule(metric="mem", above=80, skip_result=True),
    "only up": rule(only="up"),
    "least change": rule(entity="b", min_change=20),
    "least share": rule(metric="cpu", min_change_share=0.4),
    "threshold": rule(metric="cpu", above=55, report=True),
    "low values": rule(below=47, report=True),
    "both": rule(metric="mem", above=56, report=True, only="down", min_change=3),
    "all": rule(report=True, entity="b"),
}
EARLIER = [
    RuleInForce(Rule(id="old", time=0, entity="a", metric="mem", below=40, skip_result=True), 0, END // 2),
    RuleInForce(Rule(id="limit", time=0, metric="cpu", above=70, report=True), END // 3, END),
]


@pytest.mark.parametrize("others", [[], EARLIER], ids=["alone", "beside others"])
@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize("seed", range(2))
def test_a_trial_agrees_with_a_replay_under_the_rule(name: str, seed: int, others: list[RuleInForce]) -> None:
    given, frame = RULES[name], values(seed)
    stored, replayed = judged(frame, *others), judged(frame, *others, RuleInForce(given, 0, END))
    single = pl.col("metric") != "_machine"
    was, is_ = alarm_windows(stored.filter(single)), alarm_windows(replayed.filter(single))
    assert was
    found = tried(given, stored.filter(single), *others)
    assert found.windows == (len(was - is_), len(is_ - was))
    assert (found.count("gone"), found.count("new")) == outcomes(stored.filter(single), replayed.filter(single))
    assert was != is_


def test_the_alarms_of_a_whole_machine_go_with_all_of_its_metrics() -> None:
    frame, given = values(1), rule(entity="a", skip_result=True)
    stored, replayed = judged(frame), judged(frame, RuleInForce(given, 0, END))
    assert not any(entity == "a" for entity, *_ in alarm_windows(replayed))
    found = tried(given, stored)
    assert found.windows == (len(alarm_windows(stored) - alarm_windows(replayed)), 0)
    assert found.undecided == found.alarms.filter(pl.col("metric") == "_machine", pl.col("entity") == "b").height


def test_a_maintenance_mutes_what_a_new_rule_would_report() -> None:
    muted = RuleInForce(Rule(id="quiet", time=0, skip_result=True), 0, END // 2)
    given = rule(metric="cpu", report=True)
    stored = judged(values(2), muted).filter(metric="cpu")
    added = alarm_windows(judged(values(2), muted, RuleInForce(given, 0, END)).filter(metric="cpu"))
    assert tried(given, stored, muted).windows == (0, len(added - alarm_windows(stored)))
    assert all(start >= END // 2 for _, _, start in added)


def verdict(
    at: int, kind: str = "anomaly", score: float | None = 80.0, metric: str = "cpu", **more: Any
) -> dict[str, Any]:
    row = {"entity": "a", "metric": metric, "window_start": at * STEP, "window_end": (at + 1) * STEP, "kind": kind}
    return dict.fromkeys(SCHEMA) | row | {"record_score": score, "actual": 9.0, "typical": 5.0, "revision": 0} | more


def frame_of(*rows: dict[str, Any]) -> pl.DataFrame:
    return pl.DataFrame(list(rows), SCHEMA)


def test_labels_say_which_of_the_removed_alarms_were_true() -> None:
    stored = frame_of(*(verdict(at) for at in (10, 50, 90, 130)), verdict(51, metric="mem"))
    spans = [
        Span("a", ("cpu",), 50 * STEP, 51 * STEP),
        Span("a", ("cpu",), 90 * STEP, 91 * STEP, wrong=False),
        Span("a", ("_machine",), 130 * STEP, 131 * STEP, wrong=False),
        Span("a", ("cpu",), 130 * STEP, 131 * STEP),
        Span("b", ("cpu",), 10 * STEP, 11 * STEP),
    ]
    found = tried(rule(skip_result=True), stored, spans=spans)
    labels = {(alarm["metric"], alarm["from0"] // STEP): alarm["label"] for alarm in found.alarms.iter_rows(named=True)}
    said = {("cpu", 10): None, ("cpu", 50): "true", ("cpu", 90): "false_alarm", ("cpu", 130): "true", ("mem", 51): None}
    assert labels == said
    removed = found.figures()["removed"]
    assert (removed["alarms"], removed["true_alarms"], removed["false_alarms"]) == (5, 2, 1)
    assert {each["label"] for each in found.examples[:2]} == {"true"}
    lines = list(trial_lines(found))
    assert "removed: 5 of 5 alarms (5 windows): 5 critical" in lines
    assert "  by labels: 2 true alarms lost, 1 false alarm spared, 2 without a label" in lines


def incident(name: str, *series: tuple[str, int, int], count: int | None = None) -> Incident:
    affected = [
        AffectedSeries(
            entity="a", metric=metric, kind="anomaly", since=first * STEP, reported=(first + 1) * STEP,
            end=last * STEP, record_score=80, change="more",
        )
        for metric, first, last in series
    ]  # fmt: skip
    times = {"opened": series[0][1] * STEP, "start": series[0][1] * STEP, "updated": END, "end": END}
    return Incident(
        id=name, site="default", status="resolved", severity="major", severity_score=60, record_score=80, message="m",
        machine_count=1, series_count=count or len(series), open_series=0, series=affected, **times,
    )  # fmt: skip


def test_an_incident_is_removed_if_each_of_its_series_is() -> None:
    stored = frame_of(verdict(10), verdict(50), verdict(90), verdict(50, metric="mem"))
    incidents = [
        incident("whole", ("cpu", 10, 11)),
        incident("part", ("cpu", 50, 51), ("mem", 50, 51)),
        incident("long", ("cpu", 90, 91), count=60),
        incident("other", ("disk", 10, 11)),
    ]
    found = tried(rule(metric="cpu", skip_result=True), stored.filter(metric="cpu"), incidents=incidents)
    gone, smaller = found.incidents
    assert [each.id for each in gone] == ["whole"]
    assert [each.id for each in smaller] == ["part", "long"]
    assert found.figures()["removed"]["incident_severities"] == {"major": 1}


def test_ten_examples_are_given_of_what_is_removed_or_added() -> None:
    loud = frame_of(*(verdict(20 * at, score=50.0 + at) for at in range(14)))
    removed = tried(rule(only="down"), loud, spans=[Span("a", ("cpu",), 0, STEP)])
    assert [each["score"] for each in removed.examples] == [50.0, *(63.0 - at for at in range(9))]
    assert {each["outcome"] for each in removed.examples} == {"removed"}
    quiet = frame_of(*(verdict(20 * at, kind="normal", score=at) for at in range(3)), verdict(90, "normal", None))
    added = tried(rule(above=8, report=True), quiet)
    assert [(each["outcome"], each["score"]) for each in added.examples] == [
        ("added", score) for score in (2, 1, 0, None)
    ]
    assert added.severities("new") == {"warning": 3, "unknown": 1}


def test_a_rule_that_only_teaches_cannot_be_tried() -> None:
    assert "replay" in only_teaches(rule(skip_learning=True))
    assert "replay" in only_teaches(rule(weekend=True, store=True))
    assert "stored" in only_teaches(rule(store=True))
    assert only_teaches(rule(skip_learning=True, skip_result=True)) == ""


@pytest.mark.parametrize(
    ("given", "goes"),
    [
        (rule(metric="disk", skip_result=True), {"disk~full"}),
        (rule(metric="*~full", skip_result=True), {"disk~full"}),
        (rule(metric="_peers.*", skip_result=True), {"_peers.cpu"}),
        (rule(metric="cpu", skip_result=True), set()),
        (rule(skip_result=True), {"disk~full", "_peers.cpu"}),
        (rule(above=1.0, report=True), set()),
    ],
)
def test_what_is_said_beside_peers_and_of_when_it_is_full_is_tried_as_the_detector_rules(
    given: Rule, goes: set[str]
) -> None:
    known = {"entity": "a", "window_start": 0, "window_end": STEP, "since": 0, "record_score": 75.0, "actual": 90.0}
    rows = [
        dict.fromkeys(SCHEMA) | known | {"metric": metric, "kind": kind, "incident_state": "open"}
        for metric, kind in [("disk~full", "exhaustion"), ("_peers.cpu", "outlier")]
    ]
    columns = {name: kind for name, kind in SCHEMA.items() if name in rows[0]}
    found = tried(given, pl.DataFrame([{name: row[name] for name in columns} for row in rows], columns))
    assert set(found.alarms.filter(outcome="gone")["metric"]) == goes
    assert found.count("new") == 0


@pytest.mark.parametrize("metric", ["disk.used{path=/}", "disk*"])
def test_the_stored_verdicts_of_a_rule_are_also_those_of_when_its_metric_is_full(metric: str) -> None:
    names = ["disk.used{path=/}", "disk.used{path=/}~full", "_machine", "_peers.disk.used{path=/}", "cpu"]
    clause = json.dumps(_of_rule(rule(metric=metric, skip_result=True))[0])
    asked = [name for glob in (metric, f"{metric}~full") if glob in clause for name in names if matches_one(glob, name)]
    assert set(asked) == {"disk.used{path=/}", "disk.used{path=/}~full"}


def matches_one(glob: str, name: str) -> bool:
    return bool(matches(glob, pl.Series([name]))[0])
