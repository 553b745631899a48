"""The throughput benchmark, short: our windows are those of a hand-written Structured Streaming job, one by one."""

from __future__ import annotations

from pathlib import Path

import pytest

from deploy.embedded.endpoints import Endpoints
from pipelines.cli.bench import module

pytestmark = [pytest.mark.servers, pytest.mark.spark, pytest.mark.slow]


def test_a_hand_written_spark_job_gives_the_same_windows(endpoints: Endpoints, tmp_path: Path) -> None:
    figures = module("throughput").run(200_000, 500, endpoints.bootstrap, tmp_path, warm_up=2)
    outputs = figures["outputs"]
    assert outputs["equal"], outputs
    assert outputs["rows"] == 500 * 6
    assert outputs["p95_relative_difference_median"] < 0.05
