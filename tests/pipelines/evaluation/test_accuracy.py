"""Accuracy at production settings, end to end through the detection: bars that no change may fall below.

The figures of a whole run are in docs/model.md and docs/evaluation.md; the bars lie a little below them, where
noise of rounding and of other machines does not reach. Recorded data lie beside the repository, in
../shared/data; a test without is skipped.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.benchmarks import causes, kinds, nab, told, vus

DATA = Path(__file__).parents[4] / "shared" / "data"
pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]


def _data(name: str) -> Path:
    if not (DATA / name).exists():
        pytest.skip(f"{DATA / name} is not there: the recorded data lie beside the repository")
    return DATA


def test_nab_standard_is_at_least_73(tmp_path: Path) -> None:
    scores: dict[str, Any] = nab.run(_data("nab"), tmp_path)["scores"]["ours"]
    assert scores["standard"] >= 73


@pytest.fixture(scope="module")
def kpis(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What is told of recorded KPIs of web services."""
    return told.of("web_kpis", _data("web_kpis"), tmp_path_factory.mktemp("told"))


def test_of_recorded_web_kpis_three_in_five_incidents_are_told_at_one_false_alarm_a_month(kpis: dict[str, Any]) -> None:
    """The one line of arithmetic finds .61 at one false alarm on these, .72 at two, and next to nothing on NAB."""
    found = kpis["as shipped"]
    assert found["share"] >= 0.6
    assert found["false"] <= 1.05


def test_of_recorded_web_kpis_a_new_normal_away_from_incidents_is_rare(kpis: dict[str, Any]) -> None:
    """Traffic turns each morning and evening: levels of the same hour of the days before are no news."""
    news = kpis["news"]["new_normal"]
    assert news["a series and month"] * (1 - news["near a label"]) <= 1.0


def test_of_recorded_faults_of_services_incidents_name_the_cause_oftener_than_the_deepest_novel_service(
    tmp_path: Path,
) -> None:
    """A simple ranking of the values finds .37, .62, .87 on petshop, .38 first on nezha, where half is not told."""
    figures = causes.run(_data("petshop"), tmp_path)
    first, three, five = figures["petshop low_traffic"]["found"]["incidents"]
    assert first >= 0.5 and three >= 0.75 and five >= 0.8
    assert first > figures["petshop low_traffic"]["found"]["deepest, then strongest"][0]
    assert figures["nezha 2022-08-22"]["found"]["incidents"][0] >= 0.35
    off = [abs(row["said"] - row["right"]) for row in figures["calibration"] if row["number"] >= 20]
    assert off and max(off) <= 0.15


def test_of_recorded_web_kpis_incidents_tell_of_half_at_half_a_false_one_a_month_and_all_can_be_heard(
    kpis: dict[str, Any],
) -> None:
    """Each KPI is the only metric of its machine: until one series was enough, nine of 481 spans opened an incident."""
    found = kpis["incidents"]
    assert found["share"] >= 0.55
    assert found["false"] <= 0.5
    words = found["severities"]
    assert words["warning"] == words["minor"] == {"at a label": 0, "false": 0}, "channels of `major` hear of each"
    assert found["pages"]["2.0"]["later"] <= 4, "the promise of two false pages a week is kept within a factor of 2"


@pytest.mark.long
def test_recorded_metrics_of_cloud_services_are_ranked_with_a_vus_pr_of_at_least_0_63(tmp_path: Path) -> None:
    means = vus.cloud(_data("cloud_monitoring") / "cloud_monitoring")["means"]
    assert means["ours"] >= 0.63


@pytest.mark.long
def test_recorded_server_machines_are_ranked_half_as_well_again_as_by_batch_pca(tmp_path: Path) -> None:
    means = vus.asd(_data("asd") / "asd")["means"]
    assert means["ours"] >= 1.5 * means["pca_residual"]


AT_LEAST = {
    "anomalies found": 0.95,
    "changes of state found": 0.8,
    "balanced accuracy anomaly / change": 0.85,
    "series: change noticed": 0.65,
    "series: new normal within 60 windows": 0.85,
    "series: at most two alerts": 0.9,
    "series: recognised within 5 windows": 0.85,
}
AT_MOST = {"false alarms a series and month": 1.0, "median delay of anomalies, windows": 2.0}
"""Shares, and figures of `newnormal bench kinds`; of a short run each lies some incidents off those of a long one."""


def test_kinds_of_incidents_of_a_simulated_site_are_told_apart(tmp_path: Path) -> None:
    found = kinds.run(tmp_path, entities=20, weeks=3, seed=1)
    assert found["incidents"] >= 30
    low = {name: found[name] for name, bar in AT_LEAST.items() if not found[name] >= bar}
    high = {name: found[name] for name, bar in AT_MOST.items() if not found[name] <= bar}
    assert (low, high) == ({}, {})
    assert found["outages of 2 h after which the old normal alarms"] == 0.0
