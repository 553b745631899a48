"""Each scenario gives its panes on the reference and on the operator, and its final results as bounded input.

``pytest -m transcripts`` prints the matrix.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

from engine.testing import Run, run
from tests.transcripts.scenarios import Pane, Scenario, finals, scenarios

ALL = list(scenarios(Path(__file__).parent))
pytestmark = pytest.mark.transcripts


def panes(rows: Iterable[dict[str, Any]]) -> list[Pane]:
    return [
        (bool(r.get("retraction")), r["key"], r["window_start"], r["window_end"], r["pane"], r["timing"], r["revision"],
         r["sum"]) for r in rows
    ]  # fmt: skip


def by_window(some: list[Pane], merges: bool) -> dict[tuple[str, int, int], list[Pane]]:
    """The panes of each window in order; those of spans that overlap are of one window if windows merge.

    What one firing takes back of several windows that have become one may stand in any order.
    """
    spans = {pane: (pane[1], *_merged(pane, some)) if merges else pane[1:4] for pane in some}
    found: dict[tuple[str, int, int], list[Pane]] = {}
    for taken_back, group in groupby(some, key=lambda pane: pane[0]):
        for pane in sorted(group) if taken_back else group:
            found.setdefault(spans[pane], []).append(pane)
    return found


def _merged(pane: Pane, some: list[Pane]) -> tuple[int, int]:
    """The span of all panes of a key that overlap with a pane, or with one that does."""
    start, end = pane[2], pane[3]
    for _ in some:
        near = [p for p in some if p[1] == pane[1] and p[2] < end and start < p[3]]
        start, end = min(p[2] for p in near), max(p[3] for p in near)
    return start, end


def assert_fired(got: Run, scenario: Scenario) -> None:
    """Each micro-batch has written the panes that it should, those of one window in order."""
    merges = scenario.job.processor.window.merges  # type: ignore[attr-defined]
    assert len(got.written) == len(scenario.firings)
    for number, (written, wanted) in enumerate(zip(got.written, scenario.firings, strict=True)):
        made = by_window(panes(written.rows), merges)
        assert made == by_window(wanted, merges), f"micro-batch {number}: {scenario.stream.batches[number]}"


def test_there_are_enough_scenarios_and_no_name_is_used_twice() -> None:
    names = [scenario.name for scenario in ALL]
    assert len(names) >= 150
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("on", ["reference", "operator"])
@pytest.mark.parametrize("scenario", ALL, ids=lambda s: s.name)
def test_panes(scenario: Scenario, on: str) -> None:
    got = run(scenario.job, scenario.stream, on)
    assert_fired(got, scenario)
    assert sorted(map(repr, got.late)) == sorted(map(repr, scenario.late))


@pytest.mark.parametrize("scenario", [s for s in ALL if s.final is not None], ids=lambda s: s.name)
def test_bounded(scenario: Scenario) -> None:
    got = run(scenario.job, scenario.stream, "bounded")
    assert finals(panes(got.rows), scenario.adding) == scenario.final
    assert got.late == []
