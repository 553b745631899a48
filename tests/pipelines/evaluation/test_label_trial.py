"""What a label is said to have removed and added is what the detector gives that has heard it."""

from __future__ import annotations

import time
from typing import Any

import polars as pl
import pytest

from pipelines.cli.rule_trial import label_lines
from pipelines.contracts.records import Label
from pipelines.contracts.settings import DetectorSettings
from pipelines.evaluation.label_trial import LabelTrial, LabelTried, label_trial
from pipelines.evaluation.rule_trial.news import NEWS
from pipelines.evaluation.rule_trial.stored import Stored
from pipelines.evaluation.truth import Span
from tests.pipelines.evaluation.judged_series import (
    END,
    MACHINES,
    METRICS,
    MINUTE,
    alarm_windows,
    judged,
    values,
)

AT = 700 * MINUTE


def given(verdict: Any, at: int = AT) -> list[Label]:
    """A label on each series."""
    return [Label(entity=e, metric=m, start=at, time=at, verdict=verdict) for e in MACHINES for m in METRICS]


def tried(verdicts: pl.DataFrame, *labels: LabelTried, before: list[Label] | None = None, **more: Any) -> LabelTrial:
    stored = Stored(verdicts, [], MINUTE, None, False)
    return label_trial(labels, 0, END, stored, before or [], more.get("spans", []), DetectorSettings(), MINUTE)


@pytest.mark.parametrize("earlier", [[], given("false_alarm", 600 * MINUTE)], ids=["alone", "beside another"])
@pytest.mark.parametrize("verdict", ["false_alarm", "true"])
def test_alarms_that_go_and_come_are_those_of_the_detector_that_has_the_label(
    verdict: Any, earlier: list[Label]
) -> None:
    """What the detector remembers of before the label counts in full for two hours: one in ten may differ."""
    changed = wrong = 0
    for seed in range(8):
        frame = values(seed)
        today, after = judged(frame, earlier), judged(frame, [*earlier, *given(verdict)])
        found = tried(today, LabelTried(verdict, "*", "*", AT), before=earlier)
        was, is_ = (alarm_windows(each) for each in (today, after))
        said = {tuple(row[:3]) for row in found.changed.rows()}
        changed, wrong = changed + len(was ^ is_), wrong + len(said ^ was ^ is_)
        assert all(start >= AT for _, _, start in said)
    assert changed > 5
    assert wrong <= changed / 10, (wrong, changed)


def verdict(at: int, kind: str = "anomaly", score: float = 80.0, **more: Any) -> dict[str, Any]:
    times = {"window_start": at * MINUTE, "window_end": (at + 1) * MINUTE, "since": at * MINUTE}
    row = {"entity": "a", "metric": "cpu", "kind": kind, "record_score": score, "incident_state": "open"}
    known = {"values": 50_000.0, "watched": 50_000.0 * MINUTE, "changed_by_rule": False, "revision": 0}
    return dict.fromkeys(NEWS.names()) | times | row | known | more


def frame_of(*rows: dict[str, Any]) -> pl.DataFrame:
    return pl.DataFrame(list(rows), NEWS)


def test_evidence_counts_two_thirds_after_a_false_alarm_and_what_is_needed_follows_the_clock_of_the_series() -> None:
    """A value a minute is an alarm from 58.4 on, so that after a label one of 58.4 / (2/3 * 41.6 + 58.4) is needed."""
    evidence = 58.37 / (100 - 58.37)
    needed = 100 * 1.5 * evidence / (1 + 1.5 * evidence)
    rows = [verdict(n * 50, score=needed + off, incident_state=None) for n, off in enumerate([-1.0, 1.0, -1.0], 1)]
    found = tried(frame_of(*rows), LabelTried("false_alarm", "*", "cpu", 60 * MINUTE))
    assert [row[2] // MINUTE for row in found.changed.rows()] == [150], (
        "the first was before the label, the second is more"
    )
    again = tried(frame_of(*rows), LabelTried("false_alarm", "*", "cpu", 0))
    assert [row[2] // MINUTE for row in again.changed.rows()] == [50, 150]
    assert again.figures()["removed"]["alarms"] == 2
    other = tried(frame_of(*rows), LabelTried("false_alarm", "b*", "cpu", 0))
    assert other.windows == (0, 0)


def test_what_is_reported_for_another_reason_stays() -> None:
    rows = [
        verdict(50, "state_change", 60.0), verdict(100, "absence", 51.0), verdict(150, score=40.0),
        verdict(200, score=60.0, changed_by_rule=True), verdict(250, score=60.0),
    ]  # fmt: skip
    found = tried(frame_of(*rows), LabelTried("false_alarm", "*", "*", 0))
    assert [row[2] // MINUTE for row in found.changed.rows()] == [250]


def test_an_accepted_level_ends_the_incident_that_is_open_then() -> None:
    rows = [
        verdict(50, "state_change"), *(verdict(n, since=50 * MINUTE) for n in range(51, 80)),
        verdict(80, "recovered", 5.0, since=50 * MINUTE, incident_state="closed"), verdict(200),
    ]  # fmt: skip
    spans = [Span("a", ("cpu",), 200 * MINUTE, 200 * MINUTE)]
    found = tried(frame_of(*rows), LabelTried("expected_change", "a", "_machine", 60 * MINUTE), spans=spans)
    assert [row[2] // MINUTE for row in found.changed.rows()] == list(range(61, 80))
    assert (found.count("gone"), found.shortened, found.undecided) == (0, 1, 1)
    lines = list(label_lines(found))
    assert "ended earlier: 1 alarm" in lines
    assert any("1 later alarm of these series" in line for line in lines)
    late = tried(frame_of(*rows), LabelTried("new_normal", "a", "cpu", 100 * MINUTE))
    assert (late.windows, late.undecided) == ((0, 0), 0), "nothing was open"


def test_fifty_thousand_verdicts_take_seconds() -> None:
    rows = [verdict(n // 10 * 30, metric=f"m{n % 10}", score=40.0 + n % 55) for n in range(50_000)]
    frame, began = frame_of(*rows), time.process_time()
    found = tried(frame, LabelTried("false_alarm", "*", "*", 0))
    assert found.windows[0] > 1_000
    assert time.process_time() - began < 10


def beside(at: int, kind: str = "outlier", score: float = 60.0, **more: Any) -> dict[str, Any]:
    return verdict(at, kind, score, metric="_peers.cpu", **more)


@pytest.mark.parametrize(("metric", "goes"), [("_peers.cpu", True), ("cpu", True), ("_machine", False), ("mem", False)])
def test_a_false_alarm_of_a_metric_has_its_outliers_count_less(metric: str, goes: bool) -> None:
    rows = [
        beside(50), beside(80, "recovered", 0.0, since=50 * MINUTE, incident_state="closed"),
        beside(200, score=95.0), verdict(400, score=95.0),
    ]  # fmt: skip
    found = tried(frame_of(*rows), LabelTried("false_alarm", "*", metric, 0))
    assert [row[2] // MINUTE for row in found.changed.rows()] == ([50] if goes else [])
    assert not goes or found.count("gone") == 1


@pytest.mark.parametrize(("metric", "ends"), [("_peers.cpu", True), ("cpu", True), ("_machine", True), ("mem", False)])
def test_an_expected_change_ends_what_is_open_beside_peers(metric: str, ends: bool) -> None:
    rows = [
        beside(50), beside(100, since=50 * MINUTE), beside(140, since=50 * MINUTE),
        beside(180, "recovered", 0.0, since=50 * MINUTE, incident_state="closed"),
    ]  # fmt: skip
    found = tried(frame_of(*rows), LabelTried("expected_change", "a", metric, 60 * MINUTE))
    assert [row[2] // MINUTE for row in found.changed.rows()] == ([140] if ends else []), (
        "the first one after it says so"
    )


def test_of_when_it_is_full_a_trial_says_what_ends_and_not_how_much_later_it_would_be_told() -> None:
    rows = [
        verdict(at, kind, 75.0, metric="disk~full", since=50 * MINUTE, incident_state=state)
        for at, kind, state in [
            (50, "exhaustion", "open"),
            (100, "exhaustion", "open"),
            (200, "exhaustion", "open"),
            (300, "recovered", "closed"),
        ]
    ]
    known = tried(frame_of(*rows), LabelTried("expected_change", "a", "disk~full", 60 * MINUTE))
    assert [row[2] // MINUTE for row in known.changed.rows()] == [200]
    false = tried(frame_of(*rows), LabelTried("false_alarm", "a", "disk~full", 60 * MINUTE))
    assert (false.windows, false.undecided) == ((0, 0), 1)
    other = tried(frame_of(*rows), LabelTried("expected_change", "a", "_machine", 60 * MINUTE))
    assert other.windows == (0, 0), "a changed level says nothing of how it fills"
