"""Labels and rules on what is said of a metric beside peers, and of when it is full, do what their page says."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest

from pipelines.contracts.records import Label, Rule
from pipelines.contracts.records.novelty import ALARM_KINDS
from pipelines.contracts.settings import DetectorSettings
from pipelines.jobs.detectors.metrics.detection import Detection
from pipelines.jobs.detectors.metrics.micro_batch import apply_label
from pipelines.jobs.detectors.rules_in_force import RuleInForce
from tests.pipelines.detectors.shard import T0, Event, Shard, window
from tests.pipelines.detectors.test_filling import DISK, HOUR, filling
from tests.pipelines.detectors.test_filling import windows as filled

MINUTE, WINDOWS, FROM = 60_000, 900, 600
HOSTS, ODD = [f"web-{number}" for number in range(8)], "web-3"


def windows(factor: float = 3.0, until: int = WINDOWS) -> pl.DataFrame:
    """A value a minute of eight machines under one load, one of which is so many times its peers from a time on."""
    rng, rows = np.random.default_rng(7), []
    load = 100 * np.exp(np.sin(np.arange(WINDOWS) / 200))
    for host in HOSTS:
        course = load * np.exp(rng.normal(0, 0.05, WINDOWS))
        course[FROM:until] *= factor if host == ODD else 1.0
        rows += [(host, "cpu", i * MINUTE, (i + 1) * MINUTE, float(value)) for i, value in enumerate(course)]
    frame = pl.DataFrame(rows, ["entity", "metric", "window_start", "window_end", "value"], orient="row")
    return frame.with_columns(kind=pl.lit("gauge"), count=pl.lit(1), prompt="value").sort("window_end", "entity")


def judged(frame: pl.DataFrame, labels: tuple[Label, ...] = (), rules: tuple[RuleInForce, ...] = ()) -> pl.DataFrame:
    """All verdicts, with labels that take effect after the windows that had ended by then."""
    detection, found, before = Detection(DetectorSettings(), partitions=1), [], 0
    state, end = detection.new_state(), int(frame["window_end"].to_numpy().max())
    for label in [*labels, None]:
        until = end if label is None else label.effective_from
        part = frame.filter(pl.col("window_end") > before, pl.col("window_end") <= until)
        found.append(detection.process(part, state, rules, until)[0])
        if label is not None:
            apply_label(detection, state, label)
        before = until
    return pl.concat(found)


def said(verdicts: pl.DataFrame, metric: str) -> list[tuple[int, str, str | None]]:
    """(minute, kind, where the incident stands) of what is said of a metric of the odd machine, or of the disk."""
    own = verdicts.filter(pl.col("metric") == metric, pl.col("entity").is_in([ODD, "db-1"]), pl.col("kind") != "normal")
    return [(end // MINUTE, kind, at) for end, kind, at in own.select("window_end", "kind", "incident_state").rows()]


def label(verdict: Any, metric: str, at: int, entity: str = ODD) -> Label:
    return Label(entity=entity, metric=metric, start=at, time=at, verdict=verdict)


@pytest.mark.parametrize("metric", ["_peers.cpu", "cpu", "_machine"])
@pytest.mark.parametrize("verdict", ["expected_change", "new_normal"])
def test_an_outlier_that_was_expected_ends_and_is_not_told_again(metric: str, verdict: str) -> None:
    at = FROM + 40
    without = said(judged(windows()), "_peers.cpu")
    assert [kind for _, kind, _ in without] == ["outlier"], "it lasts"
    with_it = said(judged(windows(), (label(verdict, metric, at * MINUTE),)), "_peers.cpu")
    assert with_it[0] == without[0]
    ((minute, kind, course),) = with_it[1:]
    assert (minute, course) == (at + 1, "closed")
    assert kind in ("recovered", "new_normal")


def test_after_it_was_expected_it_is_news_when_the_machine_is_again_like_its_peers() -> None:
    found = said(
        judged(windows(until=800), (label("expected_change", "_peers.cpu", (FROM + 40) * MINUTE),)), "_peers.cpu"
    )
    assert [kind for _, kind, _ in found][2:] == ["outlier"]
    assert 800 < found[2][0] <= 815


def test_evidence_beside_peers_counts_less_after_false_alarms_and_more_after_true_ones() -> None:
    frame = windows(1.35)

    def first(*labels: Label) -> int:
        found = said(judged(frame, labels), "_peers.cpu")
        return found[0][0] if found else WINDOWS

    of_metric = [label(verdict, "cpu", n * MINUTE) for verdict in ("false_alarm", "true") for n in (500,)]
    beside = [label(each.verdict, "_peers.cpu", each.start) for each in of_metric]
    assert first(*[beside[0]] * 3) > first() >= first(beside[1])
    assert first(of_metric[0]) == first(beside[0]), "what is said of a metric holds beside its peers"
    assert first(label("false_alarm", "_peers.cpu", 500 * MINUTE, "web-4")) == first()


def full(verdicts: pl.DataFrame) -> list[tuple[int, str, str | None]]:
    return said(verdicts, f"{DISK}~full")


def test_what_is_known_to_fill_ends_and_is_told_again_once_room_was_made() -> None:
    hour = np.arange(70 * 12) / 12
    used = np.where(hour < 40, 40 + hour * 1.2, 40 + (hour - 40) * 1.9)
    room_made = used + 0.05 * np.random.default_rng(2).normal(size=len(hour))
    frame = filled(room_made)
    without = full(judged(frame))
    at = without[0][0] * MINUTE + HOUR
    found = full(judged(frame, (label("expected_change", f"{DISK}~full", at, "db-1"),)))
    assert found[0] == without[0]
    ends = next(n for n, each in enumerate(found) if each[1] == "recovered")
    assert found[ends] == (at // MINUTE + 5, "recovered", "closed")
    after = [minute for minute, kind, _ in found[ends + 1 :] if kind == "exhaustion"]
    assert after
    assert min(after) > 40 * 60, "nothing before room was made"


def test_a_false_alarm_has_it_told_less_time_ahead() -> None:
    frame = filled(filling(cleaned=None)[: 60 * 12])
    early = full(judged(frame))[0][0]
    hours = {
        verdict: full(judged(frame, (label(verdict, f"{DISK}~full", 10 * HOUR, "db-1"),)))[0][0]
        for verdict in ("false_alarm", "true")
    }
    assert hours["false_alarm"] > early >= hours["true"]
    unrelated = full(judged(frame, (label("false_alarm", DISK, 10 * HOUR, "db-1"),)))
    assert unrelated[0][0] == early, "a label on the metric is about its values"


@pytest.mark.parametrize("metric", ["*", "cpu", "_peers.*"])
def test_a_limit_is_one_of_values_and_not_of_what_follows_from_them(metric: str) -> None:
    rule = RuleInForce(Rule(id="limit", time=0, metric=metric, above=1.0, report=True), 0, 10**15)
    frame = windows(until=700)
    assert said(judged(frame, (), (rule,)), "_peers.cpu") == said(judged(frame), "_peers.cpu")
    disk = filled(filling())
    of_disk = RuleInForce(Rule(id="limit", time=0, metric="disk*", above=1.0, report=True), 0, 10**15)
    found = judged(disk, (), (of_disk,))
    assert full(found) == full(judged(disk))
    assert "anomaly" in found.filter(metric=DISK)["kind"].to_list()


def test_a_rule_mutes_what_is_said_beside_peers() -> None:
    rule = RuleInForce(Rule(id="mute", time=0, metric="_peers.*", entity="web-*", skip_result=True), 0, 10**15)
    found = judged(windows(), (), (rule,)).filter(pl.col("metric") == "_peers.cpu")
    assert not set(found["kind"].to_list()) & set(ALARM_KINDS)


def replica(host: str) -> str:
    """A replica of a workload, all of which are in one partition."""
    return f"shop/web-7d4b9c6f5-x2x7{'bcdfghjk'[HOSTS.index(host)]}"


def replicas() -> list[Event]:
    """A value a minute of eight replicas, one of which is three times its peers from minute 90 on."""
    rng, every = np.random.default_rng(7), []
    for number in range(1, 141):
        for host in HOSTS:
            value = float(rng.normal(100, 5)) * (3 if host == ODD and number >= 90 else 1)
            every.append(window(replica(host), "cpu", number, value, MINUTE))
    return every


@pytest.mark.parametrize(("metric", "minute"), [("_peers.cpu", 100), ("cpu", 118), ("_machine", 118)])
def test_a_label_that_comes_late_ends_an_outlier_from_then_on(metric: str, minute: int) -> None:
    """Before minute 118 nothing is judged again, and beside peers nothing ever is: it is heard at 120."""
    shard, every = Shard(MINUTE), replicas()
    of = replica(ODD)
    given = Label(entity=of, metric=metric, start=T0 + minute * MINUTE, verdict="expected_change")
    said_late = {"window_end": given.effective_from, "label": given.to_json().decode()}
    for end in range(10, 141, 10):
        events = [e for e in every if T0 + (end - 10) * MINUTE < e["window_end"] <= T0 + end * MINUTE]
        shard.take([*events, *([said_late] if end == 130 else [])], end)
    found = pl.concat(shard.verdicts).filter(pl.col("entity") == of, pl.col("metric") == "_peers.cpu")
    found = found.filter(pl.col("incident_state").is_in(["open", "closed"]))
    ends = found.select((pl.col("window_end") - T0) // MINUTE, "incident_state").rows()
    assert [course for _, course in ends] == ["open", "closed"]
    assert ends[1] == (121, "closed")


@pytest.mark.parametrize(
    ("came", "heard", "every", "ends"),
    [(125, 10, 10, 126), (125, 120, 4, 126), (125, 130, 10, 126), (102, 10, 10, 103), (4_000, 10, 10, 101)],
    ids=["replay", "live", "late", "soon", "recorded data"],
)
def test_a_label_holds_beside_peers_from_when_kafka_took_it_in(came: int, heard: int, every: int, ends: int) -> None:
    """The watermark waits for the topic of labels: live it is read before that, in a replay long before."""
    of, shard, windows_ = replica(ODD), Shard(MINUTE), replicas()
    label = Label(entity=of, metric="_peers.cpu", start=T0 + 100 * MINUTE, verdict="expected_change")
    told = {"window_end": label.effective_from, "label": label.to_json().decode(), "came": T0 + came * MINUTE}
    for end in range(every, 141, every):
        events = [e for e in windows_ if T0 + (end - every) * MINUTE < e["window_end"] <= T0 + end * MINUTE]
        shard.take([*events, *([told] if end in range(heard, heard + every) else [])], end)
    found = pl.concat(shard.verdicts).filter(pl.col("entity") == of, pl.col("metric") == "_peers.cpu")
    closed = found.filter(pl.col("incident_state") == "closed")
    assert [(end - T0) // MINUTE for end in closed["window_end"]] == [ends]
