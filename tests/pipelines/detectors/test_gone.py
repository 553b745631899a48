"""What has sent nothing for a day is no longer believed to have an incident, whatever it was when it fell silent."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest

from pipelines.contracts.settings import DetectorSettings
from pipelines.jobs.detectors.beliefs import latest
from pipelines.jobs.detectors.metrics.detection import Detection
from pipelines.jobs.detectors.metrics.state import DetectionState

T0, STEP, DAY = 1_767_571_200_000, 60_000, 86_400_000
Windows = dict[tuple[str, str], dict[int, float]]
"""The value of each window by its number, of each series."""


def noise(windows: int, seed: int = 0) -> dict[int, float]:
    return dict(enumerate(np.random.default_rng(seed).normal(50.0, 2.0, windows).tolist()))


def after(values: dict[int, float], last: float, windows: int = 3) -> dict[int, float]:
    """Values with so many unusual ones behind them."""
    return values | dict.fromkeys(range(len(values), len(values) + windows), last)


def believed(series: Windows, cuts: list[int]) -> tuple[list[dict[str, Any]], Detection, DetectionState]:
    """What is said of series, in micro-batches that end with the windows of these numbers; the last one is the end."""
    detection, said = Detection(DetectorSettings(), says=True), []
    state = detection.new_state()
    for first, end in zip([0, *cuts], cuts, strict=False):
        rows = [
            (entity, metric, T0 + n * STEP, T0 + (n + 1) * STEP, value)
            for (entity, metric), values in series.items()
            for n, value in values.items()
            if first <= n < end
        ]
        names = ["entity", "metric", "window_start", "window_end", "value"]
        types = [pl.String, pl.String, pl.Int64, pl.Int64, pl.Float64]
        frame = pl.DataFrame(rows, dict(zip(names, types, strict=True)), orient="row")
        _, state = detection.process(frame, state, (), T0 + end * STEP)
        said += latest(state.changed, state.absent).to_dicts()
        state.changed.clear()
        state.absent.clear()
    return said, detection, state


def last(said: list[dict[str, Any]]) -> dict[tuple[str, str], tuple[str, str | None]]:
    return {(each["entity"], each["metric"]): (each["kind"], each["incident_state"]) for each in said}


GONE = ("absence", "closed")
AROUND = {("host", "cpu"): noise(4_000), ("host", "mem"): noise(4_000, 1)}


@pytest.mark.parametrize("metrics", [("cpu",), ("cpu", "mem")], ids=["one metric", "several"])
def test_a_deleted_machine_is_gone_a_day_after_its_silence_was_certain_and_not_a_minute_before(
    metrics: tuple[str, ...],
) -> None:
    series = AROUND | {("vm", metric): noise(200, seed) for seed, metric in enumerate(metrics)}
    name = ("vm", "cpu" if metrics == ("cpu",) else "_machine")
    # its last window ends at 200 minutes, the first missing one at 201; a day has 1,440
    assert last(believed(series, [200, 300, 1_640])[0])[name] == ("absence", "open")
    said = believed(series, [200, 300, 1_640, 1_641])[0]
    assert last(said)[name] == GONE
    mine = next(
        each for each in said if (each["entity"], each["metric"]) == name and each["incident_state"] == "closed"
    )
    assert mine["window_end"] == T0 + 201 * STEP + DAY
    assert mine["since"] == T0 + 200 * STEP


def test_an_incident_that_a_machine_had_when_it_was_deleted_is_over_a_day_later() -> None:
    series = AROUND | {("vm", "cpu"): after(noise(200, 2), 95.0), ("vm", "mem"): noise(203, 3)}
    assert last(believed(series, [203])[0])["vm", "cpu"][1] == "open"
    found = last(believed(series, [203, 1_000, 3_000])[0])
    assert found["vm", "cpu"] == found["vm", "_machine"] == GONE
    assert found["vm", "mem"][0] == "normal"  # nothing was told of it, and nothing is


def test_what_reports_at_irregular_times_is_gone_a_day_after_its_last_window() -> None:
    rng = np.random.default_rng(4)
    at = np.cumsum(rng.choice([1, 2, 3, 5, 8], 300)).tolist()
    batch = {n: float(value) for n, value in zip(at, rng.normal(50, 2, 300), strict=True)}
    batch |= {at[-1] + n: 500.0 for n in (2, 5, 6)}
    end = at[-1] + 7
    series = {("host", name): noise(4_000, seed) for seed, name in enumerate(("cpu", "mem"))} | {("host", "job"): batch}
    assert last(believed(series, [end, end + 1_000, end + 1_439])[0])["host", "job"][1] == "open"
    said = believed(series, [end, end + 1_000, end + 1_440])[0]
    assert last(said)["host", "job"] == GONE
    assert last(said)["host", "cpu"][1] is None


def test_what_reports_once_a_day_is_never_gone_while_it_does() -> None:
    series = AROUND | {("vm", "backup"): {n: float(n % 7) for n in range(0, 40 * 1_440, 1_440)}}
    said = believed({name: v for name, v in series.items() if name[0] == "vm"}, list(range(1_440, 40 * 1_440, 720)))[0]
    assert GONE not in {(each["kind"], each["incident_state"]) for each in said}


def test_what_is_said_last_depends_on_no_micro_batches_and_is_said_once() -> None:
    series = AROUND | {("vm", "cpu"): after(noise(200, 2), 95.0), ("vm", "mem"): noise(203, 3)}
    one = believed(series, [3_000])[0]
    many, detection, state = believed(series, [*range(50, 3_000, 77), 3_000])
    assert {(e["entity"], e["metric"]): e for e in one} == {(e["entity"], e["metric"]): e for e in many}
    assert sum(each["entity"] == "vm" and each["incident_state"] == "closed" for each in many) == 2
    assert detection.absence.next_due(state) > T0 + 3_000 * STEP  # an idle shard is not woken for what was said


def test_a_machine_that_is_back_after_it_was_gone_is_believed_as_any_other() -> None:
    values = noise(2_600, 5)
    back = {n: value for n, value in values.items() if not 200 <= n < 2_000}
    series = AROUND | {("vm", "cpu"): back, ("vm", "mem"): back}
    assert last(believed(series, [200, 1_900])[0])["vm", "_machine"] == GONE
    found = last(believed(series, [200, 1_900, 2_001])[0])
    assert found["vm", "_machine"] == ("recovered", "closed")
    found = last(believed(series, [200, 1_900, 2_001, 2_600])[0])
    assert found["vm", "_machine"] == ("normal", None)
