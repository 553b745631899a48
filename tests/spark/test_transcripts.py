"""Transcripts through Spark: map side, stateful stage, checkpoints; killed and restarted queries are new ones.

All scenarios share one query, so each is cheap. By default a broad choice; ``pytest -m transcripts`` runs all of them.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from engine.testing import Run, run_all
from tests.transcripts import scenarios as windows
from tests.transcripts.operators import reader as operators
from tests.transcripts.test_transcripts import panes

FOLDER = Path(windows.__file__).parent
WINDOWS = {scenario.name: scenario for scenario in windows.scenarios(FOLDER)}
OPERATORS = {s.name: s for s in operators.scenarios(FOLDER / "operators" / "operators.yaml")}
Runs = dict[str, Run]
pytestmark = [pytest.mark.spark, pytest.mark.transcripts]


def crashing(name: str) -> bool:
    """Whether a scenario is the variant of another one in which the job is killed or restored."""
    return "killed" in name or "restored" in name


def chosen(names: list[str], every: int) -> list[str]:
    """Of each family the first scenario and then some; of scenarios with crashes more."""
    return [name for number, name in enumerate(names) if number % (2 if crashing(name) else every) == 0]


@pytest.fixture(scope="module")
def made(spark: SparkSession, request: pytest.FixtureRequest) -> Runs:
    """What Spark makes of the scenarios that were selected, in two shards."""
    wanted = {item.callspec.params["name"] for item in request.session.items if item.path == Path(__file__)}  # type: ignore[attr-defined]
    some = [s for s in (*WINDOWS.values(), *OPERATORS.values()) if s.name in wanted]
    runs = run_all([(s.job, s.stream) for s in some], "spark", shards=2)
    return {s.name: run for s, run in zip(some, runs, strict=True)}


@pytest.mark.parametrize("name", WINDOWS)
def test_panes(made: Runs, name: str) -> None:
    scenario, got = WINDOWS[name], made[name]
    assert panes(got) == sorted(scenario.panes)
    assert sorted(map(repr, got.late)) == sorted(map(repr, scenario.late))


@pytest.mark.parametrize("name", OPERATORS)
def test_results(made: Runs, name: str) -> None:
    scenario, got = OPERATORS[name], made[name]
    assert scenario.shown(got) == scenario.expect
    assert operators.shown_late(got) == scenario.late
