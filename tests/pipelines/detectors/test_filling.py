"""Series with a bound: forecasts in beliefs, what is told, and that neither micro-batches nor rules change them."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import polars as pl
import pytest

from pipelines.contracts.explanations import explained
from pipelines.contracts.records import Rule
from pipelines.contracts.settings import DetectorSettings
from pipelines.jobs.detectors.metrics.detection import Detection
from pipelines.jobs.detectors.rules_in_force import RuleInForce

STEP, HOUR = 300_000, 3_600_000
DISK = "disk.used_percent{path=/}"


def windows(values: np.ndarray, metric: str = DISK, machine: str = "db-1") -> pl.DataFrame:
    start = np.arange(len(values), dtype=np.int64) * STEP
    return pl.DataFrame({"window_start": start, "window_end": start + STEP, "value": values}).with_columns(
        entity=pl.lit(machine), metric=pl.lit(metric), kind=pl.lit("gauge"), count=pl.lit(1)
    )


def filling(hours: float = 60, cleaned: float | None = 57) -> np.ndarray:
    """Full after so many hours, from 40 %; cleaned at another hour."""
    hour = np.arange(int(80 * HOUR / STEP)) * STEP / HOUR
    value = 40 + 60 * hour / hours + 0.05 * np.random.default_rng(1).normal(size=len(hour))
    return (
        np.where(hour > cleaned, 45 + 0.05 * np.cos(np.arange(len(hour))), value) if cleaned else np.minimum(value, 100)
    )


def judged(
    frame: pl.DataFrame, cuts: int = 1, rules: tuple[RuleInForce, ...] = ()
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Verdicts of the kind, and all beliefs said, with the frame cut into some calls."""
    detection = Detection(DetectorSettings(), says=True)
    state = detection.new_state()
    ends = np.linspace(0, frame["window_end"].to_numpy().max(), cuts + 1).astype(np.int64)
    parts, beliefs = [], []
    for after, until in pairwise(ends):
        part = frame.filter((pl.col("window_end") > after) & (pl.col("window_end") <= until))
        parts.append(detection.process(part, state, rules, int(until))[0])
        beliefs.append(state.beliefs())
        state.changed, state.absent = [], []
        tables = state.to_tables()
        state = detection.from_tables(tables)
    return pl.concat(parts), pl.concat(beliefs)


def full(verdicts: pl.DataFrame) -> pl.DataFrame:
    return verdicts.filter(pl.col("metric").str.ends_with("~full"))


def test_it_is_told_before_it_is_full_and_over_when_it_was_cleaned() -> None:
    told = full(judged(windows(filling()))[0])
    assert told["kind"].to_list()[0] == "exhaustion"
    assert told["kind"].to_list()[-1] == "recovered"
    assert told["incident_state"].to_list()[-1] == "closed"
    assert told["since"].n_unique() == 1
    first = told.row(0, named=True)
    assert first["metric"] == f"{DISK}~full"
    assert first["window_end"] < first["full_earliest"] <= 60 * HOUR <= first["full_latest"]
    assert first["full_latest"] - first["window_end"] <= 24 * HOUR
    assert told.height <= 10, "only considerable changes are told"
    assert told["window_end"].to_list()[-1] <= 57.5 * HOUR, "it is over once there is room"


@pytest.mark.parametrize("bound", ["none", "0..200"])
def test_what_is_told_ends_when_the_bound_is_changed(bound: str) -> None:
    frame = windows(filling(cleaned=None))
    early, late = frame.filter(pl.col("window_end") <= 55 * HOUR), frame.filter(pl.col("window_end") > 55 * HOUR)
    detection = Detection(DetectorSettings())
    state = detection.new_state()
    told = full(detection.process(early, state)[0])
    assert set(told["incident_state"]) == {"open"}
    detection = Detection(DetectorSettings(bounds={DISK: bound}))
    found = full(explained(detection.process(late, detection.from_tables(state.to_tables()))[0])).row(0, named=True)
    assert (found["kind"], found["incident_state"], found["since"]) == ("normal", "closed", told["since"][0])
    assert found["window_end"] == 55 * HOUR + STEP
    assert found["message"].startswith(f"{DISK} of db-1 has another bound, or none, since settings were changed.")


def test_a_bound_that_says_the_same_ends_nothing() -> None:
    frame = windows(filling(cleaned=None))
    detection = Detection(DetectorSettings())
    state = detection.new_state()
    detection.process(frame.filter(pl.col("window_end") <= 55 * HOUR), state)
    detection = Detection(DetectorSettings(bounds={"*{path=/}": "0..100"}))
    rest = frame.filter(pl.col("window_end") > 55 * HOUR)
    found = detection.process(rest, detection.from_tables(state.to_tables()))[0]
    assert set(full(found)["incident_state"]) == {"open"}


@pytest.mark.parametrize("cuts", [3, 40])
def test_micro_batches_make_no_difference(cuts: int) -> None:
    whole, parts = (full(judged(windows(filling(cleaned=None)), n)[0]) for n in (1, cuts))
    assert whole.equals(parts)
    assert whole.height


def test_beliefs_hold_the_forecast_and_are_not_written_more_often() -> None:
    with_bound = judged(windows(filling()), 200)[1]
    without = judged(windows(filling(), "some.gauge"), 200)[1]
    assert with_bound["full_latest"].drop_nulls().len() > 10
    assert without["full_median"].drop_nulls().is_empty()
    assert with_bound.height <= without.height + 15


def test_a_rule_on_the_metric_mutes_it() -> None:
    rule = Rule(id="r", time=0, metric="disk.used_percent{path=/}", skip_result=True)
    told = full(judged(windows(filling()), rules=(RuleInForce(rule, 0, 10**15),))[0])
    assert set(told["kind"].to_list()) <= {"normal", "recovered"}


@pytest.mark.parametrize("metric", ["cpu.util", "http.requests", "load1"])
def test_metrics_without_a_bound_have_no_forecast(metric: str) -> None:
    assert full(judged(windows(filling(), metric))[0]).is_empty()


def test_free_bytes_run_out_and_certificates_expire() -> None:
    hour = np.arange(int(80 * HOUR / STEP)) * STEP / HOUR
    free = 5e11 * (1 - hour / 90)
    told = full(judged(windows(free, "node_filesystem_avail_bytes{mountpoint=/}"))[0])
    assert told["kind"].to_list()[0] == "exhaustion"
    expiry = np.full(len(hour), 10 * 86_400.0)  # seconds since 1970: ten days after the first value
    told = full(judged(windows(expiry, "probe_ssl_earliest_cert_expiry{instance=a}"))[0])
    first = told.row(0, named=True)
    assert first["full_earliest"] <= 10 * 24 * HOUR + STEP
    assert first["full_latest"] >= 10 * 24 * HOUR - STEP


def test_what_is_forgotten_of_series_is_forgotten_of_their_forecasts() -> None:
    detection = Detection(DetectorSettings(), says=True)
    state = detection.new_state()
    both = pl.concat([windows(filling()[:100]), windows(filling()[:100], machine="db-2")])
    detection.process(both, state, (), 100 * STEP)
    assert len(state.filling) == 2
    kept = state.series.index.keys["entity"] == "db-2"
    state.keep(kept.to_numpy(), pl.Series(["db-2"]))
    assert state.filling.keys() == [("db-2", DISK)]
