"""Rules and labels: whom they concern, from when to when, and what they do to verdicts and to what is learned."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from polars.testing import assert_frame_equal
from pydantic import ValidationError
from typer.testing import CliRunner

from engine.spec.decoder import Messages
from engine.spec.duration import NEVER, epoch_ms
from engine.spec.errors import NewnormalError
from engine.state.segments import DictSegments, ShardState
from pipelines.cli.label import app as label_app
from pipelines.cli.rule import app as rule_app
from pipelines.contracts.explanations import explained
from pipelines.contracts.records import Label, Rule
from pipelines.contracts.settings import DetectorSettings
from pipelines.jobs.detectors.control_messages import ControlMessage, ControlMessages
from pipelines.jobs.detectors.metrics.detection import Detection
from pipelines.jobs.detectors.metrics.micro_batch import apply_label
from pipelines.jobs.detectors.metrics.state import DetectionState
from pipelines.jobs.detectors.rules import effects, withheld
from pipelines.jobs.detectors.rules_in_force import RuleInForce
from pipelines.jobs.detectors.worst import last_revisions
from pipelines.jobs.operator_messages import OperatorMessageDecoder

STEP = 60_000
DETECTION = Detection(DetectorSettings())


def frame(values: dict[tuple[str, str], list[float]], start: int = 0) -> pl.DataFrame:
    rows = [
        {"entity": e, "metric": m, "window_start": start + i * STEP, "window_end": start + (i + 1) * STEP, "value": v}
        for (e, m), own in values.items()
        for i, v in enumerate(own)
    ]
    return pl.DataFrame(rows)


def noise(steps: int = 200, seed: int = 0, level: float = 50.0) -> list[float]:
    return np.random.default_rng(seed).normal(level, 3, steps).tolist()


def in_force(**fields: Any) -> list[RuleInForce]:
    return [RuleInForce(Rule(id="r", time=0, **fields), fields.get("start", 0), fields.get("end", 2**60))]


def judge(values: pl.DataFrame, rules: list[RuleInForce]) -> pl.DataFrame:
    return DETECTION.process(values, DETECTION.new_state(), rules)[0]


OUTLIERS = noise()
OUTLIERS[100], OUTLIERS[150] = 120.0, -20.0


def kinds(verdicts: pl.DataFrame, *windows: int) -> list[str]:
    own = verdicts.filter(pl.col("metric") == "cpu").sort("window_end")
    return own["kind"].gather(list(windows)).to_list()


def test_without_rules_both_outliers_are_anomalies() -> None:
    assert kinds(judge(frame({("a", "cpu"): OUTLIERS}), []), 100, 150) == ["anomaly", "anomaly"]


def test_a_rule_changes_nothing_of_what_is_learned_of_other_machines_even_where_values_are_missing() -> None:
    """What is in a frame beside a machine depends on micro-batches, so it must not decide what is learned."""
    gappy = {("a", name): [v if i % 3 else None for i, v in enumerate(noise(seed=n))] for n, name in enumerate("xy")}
    values = frame({**gappy, ("a", "z"): OUTLIERS, ("b", "cpu"): noise()})  # type: ignore[dict-item]
    on_b = judge(values, in_force(entity="b", skip_learning=True))
    of_a = pl.col("entity") == "a"
    assert_frame_equal(on_b.filter(of_a), judge(values, []).filter(of_a), check_exact=True)


def test_skip_result_silences_the_windows_that_overlap_it_and_no_others() -> None:
    verdicts = judge(frame({("a", "cpu"): OUTLIERS}), in_force(skip_result=True, start=100 * STEP + 1, end=120 * STEP))
    assert kinds(verdicts, 100, 150) == ["normal", "anomaly"]
    silent = verdicts.filter(pl.col("rules").is_not_null())
    assert silent["window_start"].to_list() == [i * STEP for i in range(100, 120)]
    assert (silent["record_score"] == 0).all()
    assert silent["rules"].explode().unique().to_list() == ["r"]


def test_a_silenced_window_has_no_figures_that_only_news_have() -> None:
    verdicts = judge(frame({("a", "cpu"): OUTLIERS, ("a", "mem"): OUTLIERS}), in_force(skip_result=True))
    silenced = verdicts.filter(pl.col("rules").is_not_null(), pl.col("kind") == "normal")
    assert {"cpu", "mem"} <= set(silenced["metric"])
    for name in ("experts", "expected", "context", "actuals", "typicals", "suggested"):
        assert silenced[name].null_count() == silenced.height, name


def learned_in(state: DetectionState) -> dict[str, dict[str, list[Any]]]:
    """A copy of the tables of a state, but for what was last said or reported, and when windows came."""
    apart = ("said.", "heard.", "ends.", "reported")
    return {
        name: table.drop_columns([column for column in table.column_names if column.startswith(apart)]).to_pydict()
        for name, table in state.to_tables().items()
    }


@pytest.mark.parametrize("cut", [None, 150, 151, 152, 153])
def test_an_anomaly_that_must_not_be_learned_is_over_with_the_next_ordinary_window_and_not_only_after_a_day(
    cut: int | None,
) -> None:
    """The model forgets such a window, so it knows no incident that could end; `incidents` would hold it open."""
    values = noise()
    values[150], values[151] = 900.0, 950.0
    rows, rules = frame({("a", "cpu"): values}), in_force(start=100 * STEP, skip_learning=True)
    verdicts, state = DETECTION.process(rows[: cut or 200], DETECTION.new_state(), rules)
    verdicts = pl.concat([verdicts, DETECTION.process(rows[cut or 200 :], state, rules)[0]])
    news = verdicts.filter(pl.col("window_start").is_between(149 * STEP, 170 * STEP))
    news = news.filter(pl.col("kind") != "normal")
    assert news.select("kind", "incident_state", pl.col("window_start") // STEP, pl.col("since") // STEP).rows() == [
        ("anomaly", "open", 150, 150), ("anomaly", "open", 151, 150), ("recovered", "closed", 152, 150),
    ]  # fmt: skip


def test_skip_learning_leaves_the_state_as_it_was_and_still_reports() -> None:
    usual, odd = (
        frame({("a", "cpu"): noise(), ("a", "mem"): noise(seed=1)}),
        frame({("a", "cpu"): [500.0] * 20, ("a", "mem"): [700.0] * 20}, start=200 * STEP),
    )
    _, state = DETECTION.process(usual, DETECTION.new_state())
    before = learned_in(state)
    verdicts, state = DETECTION.process(odd, state, in_force(skip_learning=True))
    assert learned_in(state) == before
    assert "anomaly" in set(verdicts["kind"])


@pytest.mark.parametrize(
    ("fields", "wanted"),
    [
        ({"only": "up"}, ["anomaly", "normal"]),
        ({"only": "down"}, ["normal", "anomaly"]),
        ({"min_change": 71.5}, ["normal", "normal"]),
        ({"min_change_share": 1.0}, ["anomaly", "anomaly"]),
        ({"min_change_share": 2.0}, ["normal", "normal"]),
        ({"skip_result": True, "above": 100.0}, ["normal", "anomaly"]),
        ({"skip_result": True, "below": 0.0}, ["anomaly", "normal"]),
        ({"skip_result": True, "entity": "b*"}, ["anomaly", "anomaly"]),
        ({"skip_result": True, "entity": "?", "metric": "c*u"}, ["normal", "normal"]),
        ({"skip_result": True, "metric": "c.u"}, ["anomaly", "anomaly"]),
        ({"skip_result": True, "dates": ["1970-01-02"]}, ["anomaly", "anomaly"]),
        ({"skip_result": True, "dates": ["1970-01-01"]}, ["normal", "normal"]),
        ({"skip_result": True, "dates": ["1969-12-31"], "timezone": "America/New_York"}, ["normal", "normal"]),
        ({"skip_result": True, "times": "02:00-03:00"}, ["anomaly", "normal"]),
        ({"skip_result": True, "times": "sat-sun, thu 23:00-02:00"}, ["anomaly", "anomaly"]),
        ({"skip_result": True, "times": "wed 23:00-02:00"}, ["normal", "anomaly"]),
        ({"skip_result": True, "times": "wed 20:00-21:00", "timezone": "America/New_York"}, ["normal", "anomaly"]),
        ({"skip_result": True, "times": "thu", "dates": ["1970-01-02"]}, ["anomaly", "anomaly"]),
    ],
)
def test_conditions_and_effects(fields: dict[str, Any], wanted: list[str]) -> None:
    assert kinds(judge(frame({("a", "cpu"): OUTLIERS}), in_force(**fields)), 100, 150) == wanted


def test_a_threshold_reports_what_the_model_finds_usual_and_maintenance_wins_over_it() -> None:
    verdicts = judge(frame({("a", "cpu"): OUTLIERS}), in_force(above=55.0, report=True))
    above = {i for i, value in enumerate(OUTLIERS) if value > 55.0}
    found = verdicts.filter(pl.col("kind") == "anomaly")
    assert set((found["window_start"] // STEP).to_list()) >= above
    assert found.filter(pl.col("rules").is_not_null())["since"].null_count() == 0
    both = [*in_force(above=55.0, report=True), *in_force(skip_result=True)]
    assert set(judge(frame({("a", "cpu"): OUTLIERS}), both)["kind"]) <= {"normal", "learning"}


def test_a_silenced_metric_does_not_speak_through_the_verdict_on_its_machine() -> None:
    values = {("a", name): noise(300, seed) for seed, name in enumerate(("cpu", "mem", "net"))}
    values["a", "cpu"][250] = 400.0
    loud, quiet = judge(frame(values), []), judge(frame(values), in_force(metric="cpu", skip_result=True))
    there = (pl.col("metric") == "_machine") & (pl.col("window_start") == 250 * STEP)
    assert loud.filter(there)["kind"].to_list() == ["anomaly"]
    assert quiet.filter(there)["kind"].to_list() == ["normal"]


def test_a_holiday_has_the_hours_of_a_weekend() -> None:
    hours = np.arange(24 * 7 * 4)  # from a Monday on: busy by day, quiet at weekends
    day, monday = hours // 24, epoch_ms("2026-01-05")
    value = np.where((day % 7 < 5) & (hours % 24 >= 8) & (hours % 24 < 18), 100.0, 10.0)
    holiday = day == 3 * 7 + 2
    value = value + np.random.default_rng(0).normal(0, 1, len(hours))
    value[holiday] = 10.0
    rows = pl.DataFrame({"window_start": monday + hours * 3_600_000, "value": value}).with_columns(
        entity=pl.lit("a"), metric=pl.lit("cpu"), window_end=pl.col("window_start") + 3_600_000
    )
    at_work = rows.with_row_index().filter(pl.Series(holiday) & pl.Series((hours % 24 >= 9) & (hours % 24 < 17)))
    told = judge(rows, in_force(weekend=True, dates=["2026-01-28"])).sort("window_end")
    untold = judge(rows, []).sort("window_end")
    index = at_work["index"].to_list()
    assert told["typical"].gather(index).mean() < 30 < untold["typical"].gather(index).mean()  # type: ignore[operator]
    assert told["record_score"].gather(index).max() < untold["record_score"].gather(index).max()  # type: ignore[operator]


def test_rules_that_concern_nothing_cost_nothing() -> None:
    assert effects(in_force(skip_result=True, end=1, start=0), frame({("a", "cpu"): noise(5)}, start=10)) is None


def in_state(*rules: Rule) -> ControlMessages:
    kept = ControlMessages(ShardState(DictSegments()))
    news = pl.DataFrame({"rule": [r.to_json().decode() for r in rules], "label": [None] * len(rules)})
    kept.take(news, NEVER, NEVER, NEVER)
    return kept


def test_a_version_ends_the_one_before_from_its_own_start_on() -> None:
    first = Rule(id="r", time=100, skip_result=True, end=900)
    planned = Rule(id="r", time=200, start=500, skip_learning=True)
    gone = Rule(id="r", time=300, active=False)
    other = Rule(id="s", time=50, weekend=True)
    found = [(v.rule.id, v.start, v.end) for v in in_state(planned, first, other).in_force()]
    assert found == [("r", 100, 500), ("r", 500, 2**63 - 1), ("s", 50, 2**63 - 1)]
    assert [(v.rule.id, v.start, v.end) for v in in_state(first, planned, gone).in_force()] == [("r", 100, 300)]


def test_a_rule_does_not_reach_back_before_it_was_said() -> None:
    assert in_state(Rule(id="r", time=100, start=20, skip_result=True)).in_force()[0].start == 100


def test_notices_are_kept_as_long_as_they_matter() -> None:
    kept = in_state(Rule(id="r", time=100, end=200, skip_result=True), Rule(id="s", time=100, skip_result=True))
    kept.save(150)
    assert len(ControlMessages(kept.state).versions) == 2
    kept.save(200)
    assert [rule.id for _, rule in ControlMessages(kept.state).versions] == ["s"]


@pytest.mark.parametrize(
    ("record", "text", "code"),
    [
        (Rule, b'{"id": "r", "@timestamp": 1}', "RULE_INVALID"),
        (Rule, b'{"id": "r", "@timestamp": 1, "skip_result": true, "skipresult": 1}', "RULE_INVALID"),
        (Rule, b'{"id": "r", "@timestamp": 1, "weekend": true, "dates": ["tomorrow"]}', "RULE_INVALID"),
        (Rule, b'{"id": "r", "@timestamp": 1, "weekend": true, "timezone": "Mars/Base"}', "RULE_INVALID"),
        (Rule, b'{"id": "r", "@timestamp": 5, "skip_result": true, "event.end": 5}', "RULE_INVALID"),
        (Rule, b'{"id": "r", "@timestamp": 5, "report": true, "above": 2, "below": 1}', "RULE_INVALID"),
        (Rule, b"[1", "JSON_MALFORMED"),
        (Label, b'{"host.name": "a", "event.start": 1, "verdict": "maybe"}', "LABEL_INVALID"),
        (Label, b"\xff", "JSON_MALFORMED"),
    ],
)
def test_what_cannot_be_used_is_refused_with_a_stable_code(record: Any, text: bytes, code: str) -> None:
    nothing = np.zeros(1, np.int64)
    messages = Messages("rules", 0, pa.array([text]), nothing, nothing)
    decoded = OperatorMessageDecoder(record, ControlMessage).decode(messages)
    assert [(row, found) for row, found, _ in decoded.refused] == [(0, code)]
    assert decoded.records.num_rows == 0


def test_a_rule_needs_an_effect_unless_it_withdraws() -> None:
    with pytest.raises(ValidationError, match="the rule has no effect"):
        Rule(id="r", time=1)
    assert not Rule(id="r", time=1, active=False).active


@pytest.mark.parametrize(
    ("app", "arguments", "code"),
    [
        (rule_app, ["add", "r", "--above", "5"], "RULE_INVALID"),
        (rule_app, ["add", "r", "--skip-result", "--until", "-2h"], "RULE_INVALID"),
        (rule_app, ["add", "r", "--skip-result", "--until", "soon"], "TIME_INVALID"),
        (rule_app, ["add", "r", "--skip-result", "--from", "+soon"], "DURATION_INVALID"),
        (label_app, ["add", "maybe", "a"], "LABEL_INVALID"),
    ],
)
def test_the_commands_say_what_is_wrong_before_anything_is_written(app: Any, arguments: list[str], code: str) -> None:
    error = CliRunner().invoke(app, arguments).exception
    assert isinstance(error, NewnormalError)
    assert error.code == code


def learned(values: list[float], other: list[float]) -> DetectionState:
    both = frame({("a", "cpu"): values, ("a", "mem"): other})
    return DETECTION.process(both, DETECTION.new_state())[1]


def last(state: DetectionState, cpu: float, steps: int, label: Label | None) -> dict[str, Any]:
    if label:
        apply_label(DETECTION, state, label)
    values = frame({("a", "cpu"): [cpu], ("a", "mem"): [50.0]}, start=steps * STEP)
    return DETECTION.process(values, state)[0].filter(pl.col("metric") == "cpu").row(0, named=True)


def label(verdict: Any, metric: str = "cpu") -> Label:
    return Label(entity="a", metric=metric, start=0, verdict=verdict)


def test_after_a_false_alarm_the_same_surprise_is_worth_less_and_after_a_true_one_more() -> None:
    usual, other = noise(), noise(seed=1)
    scores = {
        verdict: last(learned(usual, other), 66.0, 200, verdict and label(verdict))["record_score"]
        for verdict in (None, "false_alarm", "true")
    }
    assert scores["false_alarm"] < scores[None] < scores["true"]
    assert last(learned(usual, other), 500.0, 200, label("false_alarm"))["kind"] == "anomaly", "not deaf"
    elsewhere = last(learned(usual, other), 66.0, 200, label("false_alarm", "mem"))["record_score"]
    assert elsewhere == scores[None]


@pytest.mark.parametrize(
    ("verdict", "metric"), [("new_normal", "cpu"), ("expected_change", "_machine"), ("expected_change", "*")]
)
def test_an_expected_change_is_typical_at_once(verdict: str, metric: str) -> None:
    values = [*noise(), *noise(8, 3, level=120.0)]
    plain = last(learned(values, noise(208, 1)), 120.0, 208, None)
    accepted = last(learned(values, noise(208, 1)), 120.0, 208, label(verdict, metric))
    assert abs(plain["typical"] - 50) < 30
    assert abs(accepted["typical"] - 120) < 15
    assert accepted["record_score"] < 5 < plain["record_score"]


def test_a_label_on_an_unknown_series_changes_nothing() -> None:
    state = learned(noise(), noise(seed=1))
    before = learned_in(state)
    for verdict in ("true", "new_normal"):
        apply_label(DETECTION, state, Label(entity="z", metric="cpu", start=0, verdict=verdict))
        apply_label(DETECTION, state, Label(entity="z", start=0, verdict=verdict))
    assert learned_in(state) == before


@pytest.mark.parametrize("cuts", [[], [102], [99, 100, 101, 103, 104]], ids=str)
def test_an_alert_of_a_rule_keeps_its_onset_and_ends_with_a_recovery_however_the_stream_is_cut(cuts: list[int]) -> None:
    values = noise()
    values[100:104] = [60.0, 61.0, 62.0, 60.5]
    rules = in_force(above=58.5, report=True, start=90 * STEP)
    state, parts = DETECTION.new_state(), []
    for first, last in zip([0, *cuts], [*cuts, 200], strict=True):
        windows = frame({("a", "cpu"): values}).filter(pl.int_range(pl.len()).is_between(first, last - 1))
        made, state = DETECTION.process(windows, state, rules)
        state = DETECTION.from_tables(state.to_tables())
        parts.append(made)
    verdicts = explained(pl.concat(parts).filter(pl.col("window_start") >= 99 * STEP))
    alert = verdicts.filter(pl.col("reported_by").is_not_null(), pl.col("window_start") < 105 * STEP)
    assert alert["window_start"].to_list() == [i * STEP for i in range(100, 104)]
    assert set(alert["kind"]) == {"anomaly"}
    assert set(alert["since"]) == {100 * STEP}
    assert alert["reported_by"].to_list() == [["r"]] * 4
    assert all(text.startswith("Rule r: cpu of a is ") for text in alert["message"])
    after = verdicts.filter(pl.col("window_start") == 104 * STEP).row(0, named=True)
    assert (after["kind"], after["since"], after["reported_by"]) == ("recovered", 100 * STEP, None)
    assert after["message"].startswith("cpu of a is normal again after 4 min: ")


def test_maintenance_ends_an_alert_of_a_rule_without_a_word() -> None:
    values = noise()
    values[100:110] = [60.0] * 10
    both = [*in_force(above=58.5, report=True), *in_force(skip_result=True, start=105 * STEP, end=120 * STEP)]
    verdicts = judge(frame({("a", "cpu"): values}), both)
    assert kinds(verdicts, 104, 105, 110) == ["anomaly", "normal", "normal"]


def test_a_rule_that_reports_leaves_other_news_its_kind() -> None:
    values = noise(300)
    values[150:] = [value + 60 for value in values[150:]]
    own = last_revisions(judge(frame({("a", "cpu"): values}), [])).sort("window_start")
    ruled = last_revisions(judge(frame({("a", "cpu"): values}), in_force(above=80.0, report=True)))
    ruled = ruled.sort("window_start")
    news = own.filter(pl.col("kind").is_in(["state_change", "new_normal"]))
    assert news.height >= 2
    assert kinds(ruled, *(news["window_start"] // STEP).to_list()) == news["kind"].to_list()


@pytest.mark.parametrize(
    ("value", "held"), [(104.9, True), (105.0, False), (105.1, False), (95.0, False), (95.1, True)]
)
def test_a_change_equal_to_min_change_is_reported_and_a_smaller_one_is_not(value: float, held: bool) -> None:
    """Of what is typical, 100, 5 percent are 5 too."""
    for rule in (Rule(id="r", time=0, min_change=5.0), Rule(id="r", time=0, min_change_share=0.05)):
        assert withheld(rule, np.array([value]), np.array([100.0])).tolist() == [held]


@pytest.mark.parametrize(("only", "held"), [("up", [True, False, False]), ("down", [False, False, True])])
def test_what_is_typical_itself_is_on_neither_side(only: str, held: list[bool]) -> None:
    rule = Rule.model_validate({"id": "r", "time": 0, "only": only})
    assert withheld(rule, np.array([99.0, 100.0, 101.0]), np.full(3, 100.0)).tolist() == held
