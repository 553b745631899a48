"""Incidents as operators see them: open until closed, and called what they turned out to be where that can be seen."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from engine.spec.operator import Progress
from engine.state.segments import DictSegments, ShardState
from engine.vectorized.build import build
from pipelines.contracts.records import Label, Rule
from pipelines.contracts.records.novelty import JOINED
from pipelines.contracts.settings import DetectorSettings
from pipelines.jobs.detectors.detect_operator import Detect
from pipelines.jobs.detectors.metrics.detection import Detection
from pipelines.jobs.detectors.metrics.judging import Metrics
from pipelines.jobs.detectors.rules_in_force import RuleInForce

STEP, QUIET = 10_000, 400
IDENTITY = ("entity", "metric", "window_start", "window_end")


def _frame(shifts: dict[str, np.ndarray], seed: int = 0) -> pl.DataFrame:
    """Noise about 50 (deviation 1) of one machine's metrics, then that plus a shift each."""
    rng, parts = np.random.default_rng(seed), []
    for metric, shift in shifts.items():
        value = rng.normal(50, 1, QUIET + len(shift)) + np.concatenate([np.zeros(QUIET), shift])
        start = np.arange(len(value)) * STEP
        parts.append(
            pl.DataFrame({"metric": metric, "window_start": start, "window_end": start + STEP, "value": value})
        )
    return pl.concat(parts).with_columns(entity=pl.lit("a"), kind=pl.lit("gauge"))


def _said(frame: pl.DataFrame, *cuts: int) -> pl.DataFrame:
    """All verdicts, revisions too, of calls that are cut after some windows."""
    detection, made = Detection(DetectorSettings()), []
    state = detection.new_state()
    for low, high in zip((0, *cuts), (*cuts, 10**6), strict=True):
        part = frame.filter(pl.col("window_end").is_between(low * STEP + 1, high * STEP))
        verdicts, state = detection.process(part, detection.from_tables(state.to_tables()))
        made.append(verdicts)
    return pl.concat(made)


def _final(said: pl.DataFrame) -> pl.DataFrame:
    """The last verdict on each window."""
    last = said.sort("revision", maintain_order=True).unique(IDENTITY, keep="last")
    return last.sort("window_end", "metric")


def test_no_window_is_called_unusual_that_is_not() -> None:
    rng = np.random.default_rng(5)
    small = np.repeat(rng.uniform(3, 5, 12) * rng.choice([-1, 1], 12), 50) * np.tile(np.repeat([1.0, 0.0], 25), 12)
    said = _said(_frame({f"m{number}": np.roll(small, 7 * number) for number in range(12)}, seed=3))
    called = said.filter(pl.col("kind").is_in(["anomaly", "state_change"]), pl.col("metric") != JOINED)
    assert called.filter(pl.col("decided").is_not_null()).height >= 5, "some incidents are decided later"
    outside = ~pl.col("actual").is_between("lower", "upper")
    stuck = pl.col("evidence").struct["frozen"] >= 13
    assert called.filter(~(outside | (pl.col("record_score") >= 50) | stuck)).is_empty()


def test_a_change_of_state_is_said_of_the_worst_window_as_a_revision_of_what_was_said_of_it() -> None:
    said = _said(_frame({"m": np.full(60, 30.0)}))
    change = said.filter(kind="state_change").row(0, named=True)
    first = said.filter(pl.col("window_start") == change["window_start"], pl.col("revision") == 0).row(0, named=True)
    assert first["kind"] == "anomaly"
    assert change["window_start"] == change["since"] == QUIET * STEP
    assert (change["revision"], change["incident_state"]) == (1, "open")
    assert change["decided"] - change["window_end"] > 30 * STEP
    same = ("actual", "typical", "lower", "upper", "record_score", "evidence", "metric_kind")
    assert {name: change[name] for name in same} == {name: first[name] for name in same}


def test_it_is_the_same_window_however_the_stream_is_cut() -> None:
    frame = _frame({"m": np.full(60, 4.2), "n": np.repeat([5.0, 0.0, 6.0], 20)}, seed=2)
    whole = _final(_said(frame))
    assert whole.filter(pl.col("revision") > 0).height > 0
    for cuts in ((QUIET + 1, QUIET + 2, QUIET + 20), (QUIET + 30,), tuple(range(QUIET, QUIET + 60, 3))):
        assert _final(_said(frame, *cuts)).equals(whole)


def test_a_shift_is_open_at_every_window_until_it_is_accepted_and_then_closed_once() -> None:
    after = _final(_said(_frame({"m": np.full(80, 30.0)}))).filter(pl.col("window_start") >= QUIET * STEP)
    accepted = after["kind"].to_list().index("new_normal")
    states = after["incident_state"].to_list()
    assert states[:accepted] == ["open"] * accepted
    assert states[accepted] == "closed"
    assert set(states[accepted + 1 :]) == {None}
    assert after["since"][: accepted + 1].to_list() == [QUIET * STEP] * (accepted + 1)
    assert after["kind"][3] == "normal"


def test_an_anomaly_of_the_machine_is_open_until_it_has_recovered() -> None:
    shift = np.concatenate([np.full(5, 40.0), np.zeros(60)])
    joined = _final(_said(_frame({"m": shift, "n": shift, "o": shift}))).filter(metric=JOINED)
    after = joined.filter(pl.col("window_start") >= QUIET * STEP)
    kinds, states = after["kind"].to_list(), after["incident_state"].to_list()
    over = kinds.index("recovered")
    assert kinds[0] == "anomaly"
    assert 5 <= over <= 20
    assert states[: over + 1] == ["open"] * over + ["closed"]
    assert kinds.count("recovered") == 1
    assert after["since"][over] == after["since"][0] == QUIET * STEP


@pytest.mark.parametrize("emit", ["all", "novel"])
@pytest.mark.parametrize("metric", ["m", JOINED])
def test_a_label_that_closes_an_incident_says_so_in_the_next_verdict(emit: str, metric: str) -> None:
    frame = _frame({"m": np.full(40, 30.0), "n": np.full(40, 30.0)})
    features = frame.rename({"value": "mean"}).with_columns(
        count=pl.lit(1, pl.Int64),
        p95=pl.lit(None, pl.Float64),
        rate=pl.lit(None, pl.Float64),
        revision=pl.lit(0, pl.Int64),
    )
    at = (QUIET + 5) * STEP
    label = Label(entity="a", metric=metric, start=at - STEP, end=at, time=at, verdict="new_normal")
    news = pl.DataFrame({"label": [label.to_json().decode()], "window_end": [label.effective_from]})
    batch = pl.concat([features, news], how="diagonal").with_columns(rule=pl.lit(None, pl.String))
    processor = build(Detect(DetectorSettings(emit=emit), Metrics(60_000)))
    said = processor.process(batch, ShardState(DictSegments()), Progress(-1, 10**9)).records
    closed = said.filter(pl.col("incident_state") == "closed", pl.col("metric") == metric).row(0, named=True)
    assert closed["kind"] == "new_normal"
    assert closed["since"] == QUIET * STEP
    assert closed["window_start"] == at


def test_a_rule_that_keeps_quiet_does_not_keep_the_end_of_an_incident_to_itself() -> None:
    frame = _frame({"m": np.concatenate([np.full(5, 30.0), np.zeros(40)])})
    detection = Detection(DetectorSettings())
    rule = Rule(id="quiet", time=0, entity="a", skip_result=True)
    verdicts, _ = detection.process(frame, detection.new_state(), [RuleInForce(rule, (QUIET + 3) * STEP, 10**9)])
    over = verdicts.filter(incident_state="closed").row(0, named=True)
    assert (over["kind"], over["record_score"], over["since"]) == ("normal", 0.0, QUIET * STEP)
    muted = verdicts.filter(pl.col("window_start") >= (QUIET + 3) * STEP, pl.col("window_end") != over["window_end"])
    assert muted["incident_state"].null_count() == muted.height


def test_windows_that_are_no_news_have_no_figures_of_news_though_a_rule_forbids_to_learn_from_them() -> None:
    """They have none whether or not another metric has an open incident in the same micro-batch."""
    frame = _frame({"m": np.full(20, 4.0)}, seed=1)
    detection = Detection(DetectorSettings())
    rule = Rule(id="unlearned", time=0, entity="a", skip_learning=True)
    state, said = detection.new_state(), []
    for low, high in ((0, QUIET), *((at, at + 1) for at in range(QUIET, QUIET + 20))):
        part = frame.filter(pl.col("window_end").is_between(low * STEP + 1, high * STEP))
        verdicts, state = detection.process(part, state, [RuleInForce(rule, QUIET * STEP, 10**9)])
        said.append(verdicts)
    ordinary = pl.concat(said).filter(pl.col("kind") == "normal", pl.col("window_start") >= QUIET * STEP)
    assert ordinary.height > 5
    assert ordinary.select("context", "experts", "expected").null_count().row(0) == (ordinary.height,) * 3


@pytest.mark.parametrize("skip_result", [False, True])
@pytest.mark.parametrize("before", [1, 6])
@pytest.mark.parametrize("after", [0, 3, 12])
def test_an_incident_that_ends_while_a_rule_forbids_to_learn_ends_once(
    before: int, after: int, skip_result: bool
) -> None:
    """Each series and the machine are closed once, soon after the last unusual window, and stay so."""
    shift = np.zeros(120)
    shift[: before + after] = 60.0
    frame = _frame({"m": shift, "n": shift, "o": shift}, seed=4)
    detection = Detection(DetectorSettings())
    rule = Rule(id="maintenance", time=0, entity="a", skip_learning=True, skip_result=skip_result)
    begin, over = (QUIET + before) * STEP, (QUIET + before + after) * STEP
    verdicts, _ = detection.process(frame, detection.new_state(), [RuleInForce(rule, begin, 10**9)])
    late = verdicts.filter(pl.col("window_start") >= over, pl.col("revision") == 0)
    closed = verdicts.filter(pl.col("incident_state") == "closed", pl.col("window_start") >= begin)
    opened = verdicts.filter(pl.col("incident_state") == "open", pl.col("window_start") < over)
    told = {(row["metric"], row["since"]) for row in opened.iter_rows(named=True) if row["since"] < begin}
    assert {("m", QUIET * STEP), ("n", QUIET * STEP), ("o", QUIET * STEP)} <= told
    found = [(row["metric"], row["since"]) for row in closed.iter_rows(named=True)]
    assert sorted(found) == sorted(set(found)), "each end is said once"
    assert told <= set(found)
    assert closed["window_start"].max() <= over + 35 * STEP
    assert (
        late.filter(pl.col("window_start") > over + 35 * STEP)["incident_state"].null_count()
        == (120 - 36 - before - after) * 4
    )
