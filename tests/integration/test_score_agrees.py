"""`newnormal score` on a file agrees with the same file played through Kafka and Spark."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

from tests.integration.conftest import Pipeline

pytestmark = [pytest.mark.servers, pytest.mark.spark, pytest.mark.timeout(900)]
FILE = (
    Path(__file__).parents[3]
    / "shared"
    / "data"
    / "nab"
    / "data"
    / "realAWSCloudwatch"
    / "ec2_cpu_utilization_24ae8d.csv"
)
ROWS = 1_200


@pytest.mark.skipif(not FILE.exists(), reason=f"the NAB data is not here: {FILE}")
def test_a_played_file_gets_the_verdicts_that_score_gives_it(pipeline: Pipeline, tmp_path: Path) -> None:
    part = tmp_path / "cpu.csv"
    part.write_text("\n".join(FILE.read_text().splitlines()[: ROWS + 1]) + "\n")
    out = tmp_path / "out.csv"
    newnormal = [sys.executable, "-m", "pipelines.cli.main"]
    subprocess.run([*newnormal, "score", str(part), "--out", str(out)], check=True, env=pipeline.environment)
    subprocess.run([*newnormal, "play", str(part)], check=True, env=pipeline.environment)
    pipeline.start("normalizer", "extractor", "detector", "sink")
    pipeline.wait("all verdicts", lambda: len(pipeline.verdicts()) >= ROWS - 1)  # the last window stays open
    pipeline.wait("all verdicts in the index", pipeline.all_indexed)
    numbers = ("actual", "typical", "lower", "upper", "record_score", "state_score")
    played = pl.DataFrame(
        [{k: d.get(k) for k in ("window_start", *numbers, "kind")} for d in pipeline.documents()],
        infer_schema_length=None,
    )
    scored = pl.read_csv(out, infer_schema_length=None).with_columns(
        window_start=pl.col("time").str.to_datetime(time_zone="UTC").dt.epoch("ms")
    )
    both = scored.join(played, on="window_start", suffix="_played", how="inner")
    assert both.height >= ROWS - 1
    assert (both["kind"] == both["kind_played"]).all()
    for name in numbers:
        gap = (both[name] - both[f"{name}_played"]).abs() / both[name].abs().clip(lower_bound=1.0)
        assert (gap.max() or 0.0) < 1e-9, name
    anomalies = both.filter(pl.col("kind") == "anomaly").height
    assert 0 < anomalies < ROWS * 0.05
