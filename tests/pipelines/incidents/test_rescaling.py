"""The incidents job in another number of shards: the site's state goes to the shard that has its key."""

from __future__ import annotations

import pytest

from engine.runtime.rescale import rescaled
from engine.state.segments import DictSegments
from engine.testing.driven import Driven
from tests.pipelines.incidents.cases import MINUTE, Feed, outage


@pytest.mark.parametrize(("before", "after"), [(1, 4), (2, 3), (4, 1)])
def test_an_incident_goes_on_in_another_number_of_shards(before: int, after: int) -> None:
    feed = Feed(before)
    feed.place("vm", "zhost")
    feed.send(outage(["vm", "zhost"], 0, 5 * MINUTE), 2 * MINUTE)
    (opened,) = feed.standing
    job, states = feed.run.job, [DictSegments() for _ in range(after)]
    for state, values in zip(states, rescaled(job, [s.values for s in feed.run.states], after), strict=True):
        state.values = values
    rows, feed.run = feed.run.rows, Driven(job, after, states)
    feed.send([], 20 * MINUTE)
    (resolved,) = feed.standing
    assert (resolved.id, resolved.status) == (opened.id, "resolved")
    assert resolved.revision > opened.revision and rows
    assert resolved.candidates[0].entity == "zhost", "the topology is known in all shards"
