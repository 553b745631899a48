"""A simulated site with hosts, VMs and known events, through the production detection and the grouping."""

from __future__ import annotations

from typing import Any

import pytest

from tests.benchmarks import incidents

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    """The figures of seed 8, which was not used to choose the rules of hosts and moves (docs/evaluation.md)."""
    figures: dict[str, Any] = incidents.run(entities=25, weeks=3, seed=8)["with topology"]
    return figures


def test_nine_of_ten_incidents_hold_exactly_one_event(found: dict[str, Any]) -> None:
    assert found["incidents that hold exactly one event"] >= 0.9


def test_an_event_is_about_one_incident_and_a_host_that_goes_down_is_named_first(found: dict[str, Any]) -> None:
    assert found["incidents an event"] <= 1.3
    assert found["incidents that name their cause first"] >= 0.9
    assert found["of one VM: incidents that name it first"] >= 0.9
    assert found["outages of hosts that name a host first"] == 1.0
    assert found["events found"] >= 0.7 * found["events"], "one event must not be most of what is found"
