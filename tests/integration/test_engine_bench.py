"""The engine's benchmark, short: equal outputs, and ratios so low that no noise explains what lies below them."""

from __future__ import annotations

from pathlib import Path

import pytest

from deploy.embedded.endpoints import Endpoints
from pipelines.cli.bench import module

pytestmark = [pytest.mark.servers, pytest.mark.spark]


def test_a_process_is_faster_than_row_mode_and_sliding_windows_cost_little_more(
    endpoints: Endpoints, tmp_path: Path
) -> None:
    bench = module("engine")
    found = bench.run(["process", "sliding"], [3_000], 90_000, endpoints.bootstrap, tmp_path, warm_up=2)
    process, sliding = found["process, 3,000 keys"], found["sliding, 3,000 keys"]
    assert process["outputs"]["process"]["equal"], process["outputs"]
    assert sliding["outputs"]["sliding"]["equal"], sliding["outputs"]
    assert process["ratio"]["process"] > 3
    assert sliding["ratio"]["sliding"] > 0.3
