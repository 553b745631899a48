"""Each scenario gives its panes on the reference and on the operator, and its final results as bounded input.

``pytest -m transcripts`` prints the matrix.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.testing import Run, run
from tests.transcripts.scenarios import Pane, Scenario, finals, scenarios

ALL = list(scenarios(Path(__file__).parent))
pytestmark = pytest.mark.transcripts


def panes(some: Run) -> list[Pane]:
    return sorted(
        (bool(r.get("retraction")), r["key"], r["window_start"], r["window_end"], r["pane"], r["timing"], r["revision"],
         r["sum"]) for r in some.rows
    )  # fmt: skip


def test_there_are_enough_scenarios_and_no_name_is_used_twice() -> None:
    names = [scenario.name for scenario in ALL]
    assert len(names) >= 150
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("on", ["reference", "operator"])
@pytest.mark.parametrize("scenario", ALL, ids=lambda s: s.name)
def test_panes(scenario: Scenario, on: str) -> None:
    got = run(scenario.job, scenario.stream, on)
    assert panes(got) == sorted(scenario.panes)
    assert sorted(map(repr, got.late)) == sorted(map(repr, scenario.late))


@pytest.mark.parametrize("scenario", [s for s in ALL if s.final is not None], ids=lambda s: s.name)
def test_bounded(scenario: Scenario) -> None:
    got = run(scenario.job, scenario.stream, "bounded")
    assert finals(panes(got), scenario.adding) == scenario.final
    assert got.late == []
