"""`newnormal score`: a recorded file through the production detector at production settings."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

from engine.spec.errors import NewnormalError
from pipelines.cli.main import app
from pipelines.contracts import settings
from pipelines.evaluation.on_cores import judge_on_cores
from pipelines.evaluation.recorded import judge
from pipelines.evaluation.score import COLUMNS, score_files

DETECTOR = settings.load().detector
NAB = Path(__file__).parents[4] / "shared" / "data" / "nab" / "data"


def _write(path: Path, columns: dict[str, np.ndarray], order: np.ndarray | None = None) -> Path:
    start = datetime(2026, 3, 1, tzinfo=UTC)
    steps = len(next(iter(columns.values())))
    times = [(start + timedelta(minutes=5 * i)).strftime("%Y-%m-%d %H:%M:%S") for i in range(steps)]
    frame = pl.DataFrame({"timestamp": times, **columns})
    (frame if order is None else frame[order]).write_csv(path)
    return path


def _noise(steps: int = 400, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(50.0, 5.0, steps)


def test_one_row_comes_out_for_each_value_in_order_of_time_and_only_the_outlier_is_an_anomaly(tmp_path: Path) -> None:
    value = _noise()
    value[300] = 150.0
    out = tmp_path / "out.csv"
    file = _write(tmp_path / "in.csv", {"value": value, "label": np.zeros(400)})
    result = CliRunner().invoke(app, ["score", str(file), "--out", str(out)])
    assert result.exit_code == 0, result.output
    verdicts = pl.read_csv(out)
    assert verdicts.columns == list(COLUMNS)
    assert verdicts["metric"].unique().to_list() == ["value"]
    assert verdicts["actual"].to_list() == pytest.approx(value.tolist())
    assert verdicts["time"].is_sorted()
    assert verdicts.with_row_index().filter(pl.col("kind") == "anomaly")["index"].to_list() == [300]
    assert verdicts["record_score"].n_unique() > 350, "scores are not rounded"


def test_a_prefix_of_a_file_is_scored_as_the_whole_file_was_but_for_what_an_incident_turns_out_to_be(
    tmp_path: Path,
) -> None:
    value = _noise()
    value[250:] += 100
    whole, _ = score_files([_write(tmp_path / "whole.csv", {"value": value})], DETECTOR)
    part, _ = score_files([_write(tmp_path / "part.csv", {"value": value[:270]})], DETECTOR)
    assert whole[:270].drop("entity", "kind").equals(part.drop("entity", "kind"))
    differs = (whole["kind"][:270] != part["kind"]).arg_true().to_list()
    assert differs, "the change is not known yet at the end of the prefix"
    assert min(differs) >= 250, "what is over is said as it was"
    assert {whole["kind"][row] for row in differs} <= {"state_change", "anomaly", "normal"}


def test_several_metrics_get_a_joined_verdict_at_each_time(tmp_path: Path) -> None:
    file = _write(tmp_path / "in.csv", {"cpu": _noise(100), "mem": _noise(100, 1)})
    verdicts, _ = score_files([file], DETECTOR)
    assert verdicts.group_by("metric").len().sort("metric").rows() == [("_machine", 100), ("cpu", 100), ("mem", 100)]


def test_machines_that_are_judged_by_several_threads_get_the_same_verdicts() -> None:
    rows = [
        {"entity": entity, "metric": metric, "time": 300_000 * step, "value": float(value)}
        for at, (entity, steps) in enumerate({"a": 300, "b": 200, "c": 120}.items())
        for metric in ("cpu", "mem")
        for step, value in enumerate(_noise(steps, seed=at + len(metric)))
    ]
    values, seen = pl.DataFrame(rows).sort("time", maintain_order=True), list[tuple[int, int]]()
    apart = judge_on_cores(values, DETECTOR, lambda done, total: seen.append((done, total)), threads=2)
    assert apart.equals(judge(values, DETECTOR))
    assert apart["entity"].unique(maintain_order=True).to_list() == ["a", "b", "c"]
    assert seen[-1] == (1240, 1240)


def test_rows_out_of_order_and_missing_values_are_handled_and_reported(tmp_path: Path) -> None:
    value = _noise(100)
    value[50] = np.nan
    order = np.arange(100)
    order[[20, 21]] = order[[21, 20]]
    verdicts, (report,) = score_files([_write(tmp_path / "in.csv", {"value": value}, order)], DETECTOR)
    assert (report.missing, report.unsorted) == (1, 1)
    assert verdicts.height == 100, "one row out for each row in"
    assert verdicts["actual"].null_count() == 1
    assert verdicts["time"].is_sorted()


def test_the_sensitivity_changes_kinds_and_no_scores(tmp_path: Path) -> None:
    value = _noise()
    value[300] = 150.0
    file = _write(tmp_path / "in.csv", {"value": value})
    usual, _ = score_files([file], DETECTOR)
    sharp, _ = score_files([file], settings.load(**{"detector.threshold": 20.0}).detector)
    assert sharp["record_score"].equals(usual["record_score"])
    assert (sharp["kind"] == "anomaly").sum() > (usual["kind"] == "anomaly").sum()


def test_what_is_skipped_is_said_with_its_lines_and_by_the_exit_code(tmp_path: Path) -> None:
    file, out = tmp_path / "in.csv", tmp_path / "new" / "out.csv"
    file.write_text("Zeit;host;Last\n01.11.2026 12:00;a;53,1 %\n01.11.2026 12:00;b;7\n01.11.2026 12:01;a;kaputt\n")
    result = CliRunner().invoke(app, ["score", str(file), "--time-column", "Zeit", "--out", str(out)])
    assert result.exit_code == 3, result.output
    assert "values that are no numbers: 1 (line 4, e.g. 'kaputt')" in result.output
    assert "01.11.2026 are read day first" in result.output
    rows = pl.read_csv(out).select("time", "entity", "actual").rows()
    assert rows[0] == ("2026-11-01T12:00:00.000Z", "a", 53.1) and rows[-1][1:] == ("b", 7.0)
    empty = CliRunner().invoke(
        app, ["score", str(file), "--time-column", "Zeit", "--entity-column", "Last", "--out", str(out)]
    )
    assert isinstance(empty.exception, NewnormalError) and empty.exception.code == "SERIES_EMPTY"


@pytest.mark.skipif(not NAB.exists(), reason="needs the NAB data")
@pytest.mark.parametrize(
    ("name", "first", "last"),
    [
        ("realKnownCause/ec2_request_latency_system_failure.csv", "2014-03-14T03:00", "2014-03-14T21:00"),
        ("realAWSCloudwatch/ec2_cpu_utilization_ac20cd.csv", "2014-04-14T00:00", "2014-04-16T00:00"),
    ],
)
def test_known_faults_score_above_the_threshold_and_little_else_does(name: str, first: str, last: str) -> None:
    verdicts, _ = score_files([NAB / name], DETECTOR)
    low, high = (round(datetime.fromisoformat(t + "+00:00").timestamp() * 1000) for t in (first, last))
    inside = pl.col("time").is_between(low, high)
    assert verdicts.filter(inside)["record_score"].max() >= 50  # type: ignore[operator]
    assert (verdicts.filter(~inside)["record_score"] >= 50).mean() < 0.01  # type: ignore[operator]
