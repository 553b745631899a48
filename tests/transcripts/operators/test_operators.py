"""Each operator scenario: by the specification, on the operator, killed and restarted too, and as bounded input."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.testing import run
from tests.transcripts.operators.reader import KILLED, Scenario, scenarios, shown_late

ALL = list(scenarios(Path(__file__).parent / "operators.yaml"))
pytestmark = pytest.mark.transcripts


@pytest.mark.parametrize("on", ["reference", "operator"])
@pytest.mark.parametrize("scenario", ALL, ids=lambda s: s.name)
def test_results(scenario: Scenario, on: str) -> None:
    got = run(scenario.job, scenario.stream, on, shards=2)
    assert scenario.fired(got) == scenario.firings
    assert shown_late(got) == scenario.late


@pytest.mark.parametrize("scenario", [s for s in ALL if not s.name.endswith(KILLED)], ids=lambda s: s.name)
def test_bounded(scenario: Scenario) -> None:
    got = run(scenario.job, scenario.stream, "bounded", shards=2)
    assert scenario.shown(got.rows) == scenario.final
    assert got.late == []
