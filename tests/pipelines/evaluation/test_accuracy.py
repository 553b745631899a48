"""Accuracy at production settings, end to end through the detection: bars that no change may fall below.

The figures of a whole run are in docs/benchmarks.md; the bars lie a little below them, where noise of rounding and of
other machines does not reach. Recorded data lie beside the repository, in ../shared/data; a test without is skipped.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.benchmarks import kinds, nab, vus

DATA = Path(__file__).parents[4] / "shared" / "data"
pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]


def _data(name: str) -> Path:
    if not (DATA / name).exists():
        pytest.skip(f"{DATA / name} is not there: the recorded data lie beside the repository")
    return DATA


def test_nab_standard_is_at_least_72_5(tmp_path: Path) -> None:
    scores: dict[str, Any] = nab.run(_data("nab"), tmp_path)["scores"]["ours"]
    assert scores["standard"] >= 72.5


def test_recorded_metrics_of_cloud_services_are_ranked_with_a_vus_pr_of_at_least_0_63(tmp_path: Path) -> None:
    means = vus.cloud(_data("cloud_monitoring") / "cloud_monitoring")["means"]
    assert means["ours"] >= 0.63


def test_recorded_server_machines_are_ranked_half_as_well_again_as_by_batch_pca(tmp_path: Path) -> None:
    means = vus.asd(_data("asd") / "asd")["means"]
    assert means["ours"] >= 1.5 * means["pca_residual"]


def test_kinds_of_incidents_of_a_simulated_site_are_told_apart(tmp_path: Path) -> None:
    found = kinds.run(tmp_path, entities=20, weeks=3, seed=1)
    print(found)
