"""The throughput benchmark, short: our windows are those of a hand-written Structured Streaming job, one by one."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from deploy.embedded.endpoints import Endpoints
from tests.benchmarks import throughput

pytestmark = [pytest.mark.servers, pytest.mark.spark, pytest.mark.slow]


@pytest.fixture(autouse=True)
def _workers_find_the_benchmarks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]), prepend=os.pathsep)


def test_a_hand_written_spark_job_gives_the_same_windows(endpoints: Endpoints, tmp_path: Path) -> None:
    figures = throughput.run(200_000, 500, endpoints.bootstrap, tmp_path, warm_up=2)
    outputs = figures["outputs"]
    assert outputs["equal"], outputs
    assert outputs["rows"] == 500 * 6
    assert outputs["p95_relative_difference_median"] < 0.05
