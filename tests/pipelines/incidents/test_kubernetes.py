"""A simulated Kubernetes for a week: what is told of it. Guards workloads, ends, peers and priors together."""

from __future__ import annotations

from typing import Any

import pytest

from tests.benchmarks.kubernetes import bench

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", params=[3, pytest.param(7, marks=pytest.mark.long)], ids="{} days".format)
def found(request: pytest.FixtureRequest) -> dict[str, Any]:
    """The figures of docs/evaluation.md: those of the week, which takes eight minutes, or of its first days."""
    return bench.run(days=request.param)


def test_nothing_is_told_of_pods_that_ended_as_planned(found: dict[str, Any]) -> None:
    assert found["of_planned_ends"] == 0


def test_nine_of_ten_incidents_hold_exactly_one_event_and_name_its_node_or_workload(found: dict[str, Any]) -> None:
    assert found["hold_exactly_one"] >= 0.9
    assert found["name_node_or_workload"] >= 0.9
    assert found["name_the_change"] == 1.0


def test_most_events_are_found(found: dict[str, Any]) -> None:
    assert found["found"] >= 0.8 * found["events"]
