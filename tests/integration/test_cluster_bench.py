"""The benchmark of a cluster, short: the same windows as without one; the bar is so low that no noise explains less."""

from __future__ import annotations

from pathlib import Path

import pytest

from deploy.embedded.endpoints import Endpoints
from tests.benchmarks import cluster

pytestmark = [
    pytest.mark.servers, pytest.mark.spark, pytest.mark.slow, pytest.mark.long, pytest.mark.timeout(1800),
]  # fmt: skip


def test_two_workers_of_one_core_write_what_a_local_spark_writes(endpoints: Endpoints, tmp_path: Path) -> None:
    figures = cluster.run(400_000, 1_000, 1, endpoints.bootstrap, tmp_path, warm_up=2)
    assert figures["outputs"]["equal"], figures["outputs"]
    assert figures["outputs"]["rows"] == 1_000 * 6
    assert figures["ratio"]["both"] > 0.2
