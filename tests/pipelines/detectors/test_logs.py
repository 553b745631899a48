"""Verdicts on logs: an unseen template, a burst, silence, another mix; each told once, with an example line."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from engine.spec.operator import Progress
from engine.state.segments import DictSegments, ShardState
from engine.vectorized.build import build
from pipelines.contracts.records import Label, Rule
from pipelines.contracts.settings import DetectorSettings
from pipelines.jobs.detectors.detect_operator import Detect
from pipelines.jobs.detectors.logs.judging import Logs
from tests.pipelines.site import START, WINDOW

PROCESSOR = build(Detect(DetectorSettings(), Logs(WINDOW)))
RATES = {"get": 20.0, "put": 8.0, "login": 1.0, "slow": 0.1}
MACHINES = ("a", "b", "c", "d")


def _window(number: int, rng: np.random.Generator, rates: dict[str, dict[str, float]]) -> list[dict[str, object]]:
    rows = []
    for machine in MACHINES:
        counts = {name: int(rng.poisson(rate)) for name, rate in rates[machine].items()}
        grave = {name: n for name, n in counts.items() if name in ("slow", "lost")}
        some = {f"log.template.{name}": n for name, n in counts.items()} | {
            "log.severity.informational": sum(counts.values()) - sum(grave.values()),
            "log.severity.error": sum(grave.values()),
        }
        for metric, n in some.items():
            name = metric.rsplit(".", 1)[1]
            text = {"template": f"app {name} <n>", "example": f"{name} {number}"} if "template" in metric else {}
            row = {"entity": machine, "metric": metric, "count": n, "template": None, "example": None}
            row["severity"] = 3 if name in ("slow", "lost", "error") else 6
            rows += [row | text] if n else []
    return rows


def _features(windows: int, change: dict[int, dict[str, dict[str, float]]], seed: int = 0) -> pl.DataFrame:
    """Features of some windows; from window ``i`` on, machines have the rates of ``change[i]``."""
    rng, rates, frames = np.random.default_rng(seed), dict.fromkeys(MACHINES, RATES), []
    types = {"entity": pl.String, "metric": pl.String, "count": pl.Int64, "template": pl.String, "example": pl.String}
    types["severity"] = pl.Int64
    for number in range(windows):
        rates = rates | change.get(number, {})
        start = START + number * WINDOW
        frame = pl.DataFrame(_window(number, rng, rates), types)
        frames.append(frame.with_columns(window_start=pl.lit(start), window_end=pl.lit(start + WINDOW)))
    return pl.concat(frames)


def _judged(
    features: pl.DataFrame, cuts: list[int], seed: int = 0, said: tuple[Rule | Label, ...] = ()
) -> pl.DataFrame:
    """Last verdicts of the streaming processor, in micro-batches cut at some windows, rows in any order."""
    segments, verdicts, before = DictSegments(), [], -(2**60)
    told = [{type(one).__name__.lower(): one.to_json().decode(), "window_end": one.effective_from} for one in said]
    notices = pl.DataFrame(told, {"rule": pl.String, "label": pl.String, "window_end": pl.Int64})
    features = pl.concat([features, notices], how="diagonal")
    edges = [START, *(START + cut * WINDOW for cut in sorted(cuts)), 2**60]
    for low, high in pairwise(edges):
        part = features.filter((pl.col("window_end") > low) & (pl.col("window_end") <= high))
        state = ShardState(segments)
        made = PROCESSOR.process(part.sample(fraction=1.0, shuffle=True, seed=seed), state, Progress(before, high))
        state.save()
        before = high
        verdicts += [made.records] if made.records.height else []
    said_last = pl.concat(verdicts, how="diagonal").sort("revision", maintain_order=True)
    last = said_last.unique(["entity", "window_end"], keep="last", maintain_order=True)
    return last.sort("window_end", "entity")


def _news(verdicts: pl.DataFrame, entity: str) -> list[tuple[int, str]]:
    """Number of the window, and kind, of all that is news of a machine."""
    some = verdicts.filter((pl.col("entity") == entity) & ~pl.col("kind").is_in(["normal", "learning"]))
    return [((end - START) // WINDOW - 1, kind) for end, kind in some.select("window_end", "kind").iter_rows()]


def test_a_usual_log_is_no_news() -> None:
    verdicts = _judged(_features(400, {}), [])
    assert verdicts.height == 400 * len(MACHINES)
    assert verdicts.filter(pl.col("window_end") <= START + 9 * WINDOW)["kind"].unique().to_list() == ["learning"]
    assert [_news(verdicts, machine) for machine in MACHINES] == [[], [], [], []]


def test_an_unseen_template_is_an_anomaly_with_its_text_and_an_example_line_and_is_over_soon() -> None:
    new = _features(420, {400: {"a": RATES | {"lost": 1.5}}, 401: {"a": RATES}}, seed=3)
    verdicts = _judged(new, [])
    assert _news(verdicts, "a")[0] == (400, "anomaly")
    assert _news(verdicts, "a")[-1][1] == "recovered"
    row = verdicts.filter((pl.col("entity") == "a") & (pl.col("kind") == "anomaly")).row(0, named=True)
    assert row["template"] == "app lost <n>"
    assert row["example"] == "lost 400"
    assert row["level"] == 3, "the syslog severity of the template that is named, an error"
    assert row["evidence"]["unseen"] > 6
    assert row["influencers"][0]["key"] == "log.template.lost"
    assert "app lost <n>" in row["details"]
    assert [_news(verdicts, machine) for machine in MACHINES[1:]] == [[], [], []]


def test_a_template_that_other_machines_have_is_less_news_than_one_that_none_has() -> None:
    known = {name: RATES | {"lost": 2.0} for name in ("b", "c")}
    seen = _judged(_features(420, {0: known, 400: {"a": RATES | {"lost": 1.5}}}, seed=3), [])
    new = _judged(_features(420, {400: {"a": RATES | {"lost": 1.5}}}, seed=3), [])
    first = [
        verdicts.filter((pl.col("entity") == "a") & (pl.col("window_end") == START + 401 * WINDOW))["record_score"][0]
        for verdicts in (seen, new)
    ]
    assert first[0] < 50 <= first[1]


def test_a_burst_is_an_anomaly_that_ends_and_is_not_learned() -> None:
    loud = RATES | {"slow": 30.0}
    verdicts = _judged(_features(420, {300: {"b": loud}, 305: {"b": RATES}, 400: {"b": loud}, 405: {"b": RATES}}), [])
    kinds = _news(verdicts, "b")
    assert [number for number, kind in kinds if kind == "anomaly"] == [*range(300, 305), *range(400, 405)]
    assert [kind for _, kind in kinds if kind != "anomaly"] == ["recovered"] * 2


def test_a_lasting_change_is_announced_once_and_becomes_the_new_normal() -> None:
    other = {"get": 8.0, "put": 25.0, "login": 6.0, "slow": 0.1}
    verdicts = _judged(_features(440, {300: {"c": other}}), [])
    kinds = _news(verdicts, "c")
    assert [kind for _, kind in kinds].count("state_change") == 1
    assert [kind for _, kind in kinds].count("new_normal") == 1
    accepted = next(number for number, kind in kinds if kind == "new_normal")
    assert accepted <= 420
    assert kinds[-1][0] == accepted
    change = verdicts.filter(pl.col("kind") == "state_change").row(0, named=True)
    assert START + 300 * WINDOW <= change["since"] <= change["window_start"] <= START + 303 * WINDOW
    outside = not change["lower"] <= change["actual"] <= change["upper"]
    assert change["record_score"] >= 50 or outside or max(change["evidence"].values()) >= 6
    assert change["window_end"] < change["decided"] < START + accepted * WINDOW
    assert change["revision"] == 1
    told = verdicts.filter(pl.col("entity") == "c", pl.col("window_start") >= change["since"])
    known = pl.col("window_end") >= change["decided"]
    states = told.filter(known, pl.col("window_start") < START + accepted * WINDOW)
    assert set(states["incident_state"]) == {"open"}
    assert told.filter(pl.col("incident_state") == "closed")["kind"].to_list() == ["new_normal"]


def test_a_machine_that_falls_silent_is_absent_once_since_its_last_line_and_recovers() -> None:
    verdicts = _judged(_features(260, {200: {"d": {"get": 0.0}}, 240: {"d": RATES}}), [])
    assert _news(verdicts, "d") == [(200, "absence"), (240, "recovered")]
    gone = verdicts.filter(pl.col("kind") == "absence").row(0, named=True)
    assert gone["since"] == START + 200 * WINDOW
    assert gone["actual"] == 0


def test_a_log_that_is_silent_most_of_the_time_is_not_absent() -> None:
    rare = {"get": 0.02}
    verdicts = _judged(_features(300, {0: {"d": rare}}), [])
    assert _news(verdicts, "d") == []


def _upgrade(begin: int, end: int, **effects: bool) -> Rule:
    times = {"time": START + begin * WINDOW, "end": START + end * WINDOW}
    return Rule(id="upgrade", entity="b", metric="logs", **times, **effects)


def test_what_a_rule_skips_is_neither_reported_nor_learned_and_the_others_do_not_notice() -> None:
    loud = {100: {"b": {"slow": 300.0}}, 160: {"b": RATES}, 180: {"b": RATES | {"slow": 30.0}}, 181: {"b": RATES}}
    features, rule = _features(190, loud), _upgrade(100, 160, skip_result=True, skip_learning=True)
    ruled, plain = _judged(features, [130], said=(rule,)), _judged(features, [])
    assert [kind for _, kind in _news(plain, "b")].count("state_change") == 1
    assert _news(ruled, "b")[0] == (180, "anomaly")
    within = ruled.filter((pl.col("entity") == "b") & pl.col("rules").is_not_null())
    assert within.height == 60
    assert within["record_score"].max() == 0
    others = (some.filter(pl.col("entity") != "b").drop("rules", strict=False) for some in (ruled, plain))
    assert_frame_equal(*others, check_exact=True)


def test_with_skip_learning_alone_it_is_seen_all_the_time() -> None:
    loud = _features(140, {100: {"b": RATES | {"slow": 30.0}}})
    seen = _judged(loud, [], said=(_upgrade(100, 140, skip_learning=True),))
    assert [number for number, kind in _news(seen, "b") if kind == "anomaly"] == [*range(100, 140)]


def test_a_label_on_a_log_changes_what_its_evidence_is_worth_from_then_on() -> None:
    features = _features(202, {100: {"b": RATES | {"slow": 6.0}}, 101: {"b": RATES}, 200: {"b": RATES | {"slow": 6.0}}})
    at = START + 110 * WINDOW
    label = Label(entity="b", metric="logs", start=at, end=at, time=at, verdict="false_alarm")
    plain, told = (
        some.filter((pl.col("entity") == "b") & (pl.col("window_end") == START + 201 * WINDOW))["record_score"][0]
        for some in (_judged(features, []), _judged(features, [111, 150], said=(label,)))
    )
    weight = 2 / 3 * plain / (100 - plain)
    assert abs(told - 100 * weight / (1 + weight)) < 0.05  # what was said fades a little


def _new_normal(at: int, metric: str = "logs") -> Label:
    time = START + at * WINDOW
    return Label(entity="b", metric=metric, start=time - WINDOW, end=time, time=time, verdict="new_normal")


@pytest.mark.parametrize("metric", ["logs", "log.template.slow", "_machine"])
def test_a_burst_that_an_operator_calls_a_new_normal_is_news_no_more_and_its_end_is(metric: str) -> None:
    loud = _features(110, {60: {"b": RATES | {"slow": 30.0}}, 90: {"b": RATES}})
    plain, told = _judged(loud, []), _judged(loud, [65], said=(_new_normal(65, metric),))
    kinds = _news(told, "b")
    assert (66, "anomaly") in _news(plain, "b")
    assert [number for number, _ in kinds if number <= 90] == [60, 61, 62, 63, 64, 65, 90]
    assert (65, "new_normal") in kinds, "the operator's word is told of"
    typical = told.filter((pl.col("entity") == "b") & (pl.col("window_end") == START + 66 * WINDOW))["typical"][0]
    assert 45 < typical < 75
    others = (some.filter(pl.col("entity") != "b") for some in (plain, told))
    assert_frame_equal(*others, check_exact=True)


def test_a_label_on_one_template_leaves_the_others_news() -> None:
    loud = _features(70, {60: {"b": RATES | {"slow": 30.0, "login": 30.0}}})
    told = _judged(loud, [], said=(_new_normal(65, "log.template.slow"),))
    news = _news(told, "b")[:7]
    assert news == [(number, "new_normal" if number == 65 else "anomaly") for number in range(60, 67)]
    unknown = _judged(loud, [], said=(_new_normal(65, "log.template.nobody"),))
    assert_frame_equal(unknown, _judged(loud, []), check_exact=True)


def test_a_silence_that_an_operator_calls_a_new_normal_is_over_and_its_end_is_news() -> None:
    features = _features(110, {60: {"b": {"get": 0.0}}, 90: {"b": RATES}})
    told = _judged(features, [65], said=(_new_normal(65),))
    assert _news(told, "b")[:3] == [(60, "absence"), (65, "new_normal"), (90, "anomaly")]
    assert _news(_judged(features, []), "b") == [(60, "absence"), (90, "recovered")]


@hypothesis(deadline=None, max_examples=6)
@given(st.lists(st.integers(1, 119), max_size=4), st.integers(0, 1000))
def test_verdicts_are_the_same_whatever_the_batches_and_restarts(cuts: list[int], seed: int) -> None:
    events = {60: {"a": RATES | {"lost": 2.0}}, 70: {"a": RATES, "d": {"get": 0.0}}, 90: {"d": RATES}}
    features, said = _features(120, events), (_upgrade(80, 95, skip_learning=True, skip_result=True),)
    found, whole = _judged(features, cuts, seed, said), _judged(features, [], said=said)
    assert_frame_equal(found.select(whole.columns), whole, check_exact=True)


def test_an_error_that_no_machine_had_before_scores_higher_with_each_window_in_which_it_comes_again() -> None:
    """A lost database: five lines a window from window 300 on. Its arrival alone scores about 50."""
    lost = {"a": RATES | {"lost": 5.0}}
    verdicts = _judged(_features(320, {300: lost}), []).filter(entity="a")
    during = verdicts.filter(pl.col("window_end") > START + 300 * WINDOW)["record_score"].to_list()
    assert 50 <= during[0] < 75
    assert min(during[5:12]) >= 70
    assert verdicts.filter(pl.col("window_end") <= START + 300 * WINDOW, kind="anomaly").height <= 1


def test_a_kind_of_line_that_is_new_and_no_error_scores_no_higher_when_it_comes_again() -> None:
    """A release brings a message of its own; that it goes on is no alarm beyond its arrival."""
    release = {"a": RATES | {"fresh": 5.0}}
    verdicts = _judged(_features(320, {300: release}), []).filter(entity="a")
    after = verdicts.filter(pl.col("window_end") > START + 302 * WINDOW)
    assert after["record_score"].max() < 70  # type: ignore[operator]


def test_an_incident_of_a_log_ends_once_though_a_rule_forbids_to_learn_and_to_report() -> None:
    """The last loud window is 99, the rule begins with window 100: six quiet windows end it, as without the rule."""
    features = _features(160, {97: {"b": RATES | {"slow": 300.0}}, 100: {"b": RATES}})
    rule = _upgrade(100, 155, skip_result=True, skip_learning=True)
    for said in ((), (rule,)):
        verdicts = _judged(features, [], said=said).filter(entity="b")
        closed = verdicts.filter(pl.col("incident_state") == "closed")["window_end"].to_list()
        assert [(end - START) // WINDOW for end in closed] == [106]
