"""Transcripts through Spark: map side, stateful stage, checkpoints; killed and restarted queries are new ones.

All scenarios share one query, so each is cheap. It is a broad choice of them; ``NEWNORMAL_TRANSCRIPTS=all`` runs all.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import TypeVar

import pytest
from pyspark.sql import SparkSession

from engine.testing import Run, run_all
from tests.transcripts import scenarios as windows
from tests.transcripts.operators import reader as operators
from tests.transcripts.test_transcripts import assert_fired

Scenario = TypeVar("Scenario", windows.Scenario, operators.Scenario)
Runs = dict[str, Run]
FOLDER = Path(windows.__file__).parent
CRASHES, BATCHES = 2, 8
"""Each crash of a scenario is a start of the query, each micro-batch one of the query: what is longer waits for all."""

LEAST = 150
"""So many of them run with all other tests."""


def chosen(scenarios: Iterable[Scenario]) -> dict[str, Scenario]:
    """The scenarios that are short and crash seldom; all of them if it is asked for."""
    found = list(scenarios)
    if os.environ.get("NEWNORMAL_TRANSCRIPTS") != "all":
        found = [s for s in found if _is_short(s)]
        found = [s for s in found if not _is_plain_twin(s, found)]
    return {s.name: s for s in found}


def _is_plain_twin(scenario: Scenario, among: list[Scenario]) -> bool:
    """Whether the same scenario is there with crashes too."""
    return scenario.name + operators.KILLED in {other.name for other in among}


def _is_short(scenario: windows.Scenario | operators.Scenario) -> bool:
    return len(scenario.stream.batches) <= BATCHES and _crashes(scenario) <= CRASHES


def _crashes(scenario: windows.Scenario | operators.Scenario) -> int:
    return sum(batch.then is not None for batch in scenario.stream.batches)


WINDOWS = chosen(windows.scenarios(FOLDER))
OPERATORS = chosen(operators.scenarios(FOLDER / "operators" / "operators.yaml"))
assert len(WINDOWS) + len(OPERATORS) >= LEAST
pytestmark = [pytest.mark.spark, pytest.mark.transcripts, pytest.mark.timeout(3600)]


@pytest.fixture(scope="module")
def made(spark: SparkSession, request: pytest.FixtureRequest) -> Runs:
    """What Spark makes of the scenarios that were selected, in two shards."""
    wanted = {item.callspec.params["name"] for item in request.session.items if item.path == Path(__file__)}  # type: ignore[attr-defined]
    some = [s for s in (*WINDOWS.values(), *OPERATORS.values()) if s.name in wanted]
    made: Runs = {}
    for alike in ([s for s in some if _is_short(s)], [s for s in some if not _is_short(s)]):
        runs = run_all([(s.job, s.stream) for s in alike], "spark", shards=2) if alike else []
        made |= {s.name: run for s, run in zip(alike, runs, strict=True)}
    return made


@pytest.mark.parametrize("name", WINDOWS)
def test_panes(made: Runs, name: str) -> None:
    scenario, got = WINDOWS[name], made[name]
    assert_fired(got, scenario)
    assert sorted(map(repr, got.late)) == sorted(map(repr, scenario.late))


@pytest.mark.parametrize("name", OPERATORS)
def test_results(made: Runs, name: str) -> None:
    scenario, got = OPERATORS[name], made[name]
    assert scenario.fired(got) == scenario.firings
    assert operators.shown_late(got) == scenario.late
