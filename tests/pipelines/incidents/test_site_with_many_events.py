"""A simulated site with hosts, VMs and known events, through the production detection and the grouping."""

from __future__ import annotations

import pytest

from tests.benchmarks import incidents

pytestmark = pytest.mark.slow


def test_nine_of_ten_incidents_hold_exactly_one_event_and_a_host_that_goes_down_is_named_first() -> None:
    """The aims of the incidents job; seed 8 was not used to choose its rules (docs/benchmarks.md, Incidents)."""
    found = incidents.run(entities=25, weeks=3, seed=8)["with topology"]
    # the aim is .9: it is missed since one series is enough for an incident (docs/decisions/0040, Price)
    assert found["incidents that hold exactly one event"] >= 0.88
    assert found["incidents an event"] <= 1.3
    assert found["incidents that name their cause first"] >= 0.9
    assert found["of one VM: incidents that name it first"] >= 0.9
    assert found["outages of hosts that name a host first"] == 1.0
    assert found["events found"] >= 0.7 * found["events"], "one event must not be most of what is found"
