"""Two questions, two numbers: `record_score` marks news, `state_score` the whole of an incident; and severity words."""

from __future__ import annotations

import numpy as np
import polars as pl
from polars.testing import assert_frame_equal

from engine.spec.operator import Progress
from engine.state.segments import DictSegments, ShardState
from engine.vectorized.build import build
from pipelines.contracts.records import Novelty, Rule
from pipelines.contracts.records.novelty import JOINED
from pipelines.contracts.settings import DetectorSettings
from pipelines.evaluation.vus import auc_pr
from pipelines.jobs.detectors.detect_operator import Detect
from pipelines.jobs.detectors.metrics.detection import Detection
from pipelines.jobs.detectors.metrics.judging import Metrics
from pipelines.jobs.detectors.rules_in_force import RuleInForce

MINUTE = 60_000
DAY = 288
"""Windows of five minutes."""

INCIDENTS = ((7 * DAY + 130, 30), (8 * DAY + 40, 24), (9 * DAY + 200, 30))
"""First window and length of each: two hours and more."""


def _server(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """A machine's metrics over ten days, with a daily shape and bursts, and incidents in some of them; and labels."""
    rng, windows, metrics = np.random.default_rng(seed), 10 * DAY, 12
    day = np.sin(2 * np.pi * np.arange(windows) / DAY)[:, None]
    off, labels = rng.normal(0, 1, (windows, metrics)), np.zeros(windows)
    for metric in range(0, metrics, 3):
        for start in np.flatnonzero(rng.random(windows) < 1 / 600):
            off[start : start + 3, metric] += rng.exponential(5)
    for start, length in INCIDENTS:
        some = rng.choice(metrics, 6, replace=False)
        off[start : start + length, some] += rng.uniform(5, 9, 6)
        labels[start : start + length] = 1
    values = rng.lognormal(3, 1, metrics) * (1 + rng.uniform(0, 0.3, metrics) * day) * np.maximum(1 + 0.05 * off, 0)
    return values, labels


def _frame(values: np.ndarray, step: int = MINUTE) -> pl.DataFrame:
    windows, metrics = values.shape
    end = np.repeat(1 + np.arange(windows), metrics) * step
    names = np.tile([f"m{number:02d}" for number in range(metrics)], windows)
    columns = {"entity": "a", "metric": names, "window_start": end - step, "window_end": end}
    return pl.DataFrame(columns | {"value": values.ravel()})


def _shifted(seed: int = 1) -> pl.DataFrame:
    """Two metrics, of which one shifts at window 400 for 30 windows."""
    values = np.random.default_rng(seed).normal(50, 1, (440, 2))
    values[400:430, 0] += 20
    return _frame(values)


def test_of_a_machine_it_ranks_incidents_of_hours_above_normal_windows_as_a_whole() -> None:
    values, labels = _server()
    detection = Detection(DetectorSettings())
    verdicts, _ = detection.process(_frame(values, 5 * MINUTE), detection.new_state())
    joined = verdicts.filter(metric=JOINED)
    state, record = (joined[name].to_numpy() for name in ("state_score", "record_score"))
    known = np.arange(len(labels)) >= 6 * DAY
    assert auc_pr(labels[known], state[known]) > max(auc_pr(labels[known], record[known]), 0.95)
    usual, inside = np.quantile(state[known & (labels == 0)], 0.99), labels > 0
    assert (state[inside] > usual).mean() > 0.8
    assert (state[inside] >= record[inside]).all(), "repeats take nothing off it"


def test_rules_that_mute_a_window_leave_no_state_of_it() -> None:
    rule = Rule(id="r", time=1, entity="a", start=0, end=10**9, skip_result=True)
    detection = Detection(DetectorSettings())
    frame = _shifted()
    told, _ = detection.process(frame, detection.new_state())
    muted, _ = detection.process(frame, detection.new_state(), [RuleInForce(rule, 0, 10**9)])
    assert told["state_score"].max() > 60  # type: ignore[operator]
    assert muted["state_score"].max() == 0


def _records(frame: pl.DataFrame, *cuts: int) -> pl.DataFrame:
    """What the detector writes of a frame in micro-batches that are cut at some windows."""
    processor, segments, made = build(Detect(DetectorSettings(emit="all"), Metrics(horizon=MINUTE))), DictSegments(), []
    before = 0
    for now in [*(cut * MINUTE for cut in cuts), 2**50]:
        part = frame.filter(pl.col("window_end").is_between(before + 1, now))
        part = part.rename({"value": "mean"}).with_columns(kind=pl.lit("gauge"), count=1, revision=0)
        part = part.with_columns(p95="mean", rate=pl.lit(None, pl.Float64))
        state = ShardState(segments)
        made.append(processor.process(part, state, Progress(before, now)).records)
        state.save()
        before = now
    last = pl.concat(made).sort("revision", maintain_order=True)
    return last.unique(["entity", "metric", "window_end"], keep="last").sort("window_end", "metric")


def test_every_verdict_has_the_severity_of_its_score_whatever_the_batches() -> None:
    whole = _records(_shifted())
    words = ["warning", "minor", "major", "critical"]
    wanted = [words[sum(score >= bound for bound in (25, 50, 75))] for score in whole["record_score"]]
    assert whole["severity"].to_list() == wanted
    assert set(wanted) >= {"warning", "minor", "major"}
    numbers = ("record_score", "state_score", "severity", "kind", "metric", "window_end")
    assert_frame_equal(_records(_shifted(), 401, 405, 431).select(numbers), whole.select(numbers), check_exact=True)


def test_the_state_of_a_version_that_had_neither_is_opened_in_the_midst_of_an_incident() -> None:
    frame, detection = _shifted(), Detection(DetectorSettings())
    first, rest = frame.filter(pl.col("window_end") <= 410 * MINUTE), frame.filter(pl.col("window_end") > 410 * MINUTE)
    _, state = detection.process(first, detection.new_state())
    tables = state.to_tables()
    assert tables["worst"].num_rows == 1
    old = tables | {"worst": tables["worst"].drop_columns(["state_score", "severity"])}
    wanted, _ = detection.process(rest, detection.from_tables(tables))
    got, _ = detection.process(rest, detection.from_tables(old))
    of_new_windows = pl.col("window_end") > 410 * MINUTE
    assert_frame_equal(got.filter(of_new_windows), wanted.filter(of_new_windows), check_exact=True)
    assert got["state_score"].max() > 60  # type: ignore[operator]


def test_a_document_of_an_earlier_version_is_read_without_them() -> None:
    row = {"host.name": "a", "metric": "m", "window_start": 0, "@timestamp": 10, "kind": "anomaly"}
    old = Novelty.model_validate(row | {"record_score": 60.0, "probability": 1e-6})
    assert (old.state_score, old.severity) == (0.0, None)
