"""The engine's benchmark, short: equal outputs, and a ratio so low that no noise explains what lies below it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from deploy.embedded.endpoints import Endpoints
from tests.benchmarks import engine

pytestmark = [pytest.mark.servers, pytest.mark.spark, pytest.mark.slow]


@pytest.fixture(autouse=True)
def _workers_find_the_benchmarks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]), prepend=os.pathsep)


def test_a_process_does_the_work_of_row_mode_and_is_faster(endpoints: Endpoints, tmp_path: Path) -> None:
    found = engine.run(["process"], [3_000], 60_000, endpoints.bootstrap, tmp_path, warm_up=2)["process, 3,000 keys"]
    assert found["outputs"]["process"]["equal"], found["outputs"]
    assert found["ratio"]["process"] > 3
