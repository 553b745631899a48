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
from tests.transcripts.test_transcripts import panes

Scenario = TypeVar("Scenario", windows.Scenario, operators.Scenario)
Runs = dict[str, Run]
FOLDER = Path(windows.__file__).parent
CRASHES, BATCHES, EVERY = 3, 8, 7
"""Each crash of a scenario is a start of the query, each micro-batch one of the query: what is longer waits for all."""


def chosen(scenarios: Iterable[Scenario]) -> dict[str, Scenario]:
    """Short scenarios: those with crashes, of windows half of them, and some of the others."""
    found = list(scenarios)
    if os.environ.get("NEWNORMAL_TRANSCRIPTS") == "all":
        return {s.name: s for s in found}
    short = [s for s in found if len(s.stream.batches) <= BATCHES and _crashes(s) <= CRASHES]
    crashing = [s for s in short if _crashes(s)]
    plain = [s for s in short if not _crashes(s) and s.name + operators.KILLED not in {c.name for c in short}]
    crashing = crashing[::2] if isinstance(found[0], windows.Scenario) else crashing
    return {s.name: s for s in [*crashing, *plain[::EVERY]]}


def _crashes(scenario: windows.Scenario | operators.Scenario) -> int:
    return sum(batch.then is not None for batch in scenario.stream.batches)


WINDOWS = chosen(windows.scenarios(FOLDER))
OPERATORS = chosen(operators.scenarios(FOLDER / "operators" / "operators.yaml"))
pytestmark = [pytest.mark.spark, pytest.mark.transcripts]


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
