"""The incidents job in another number of shards: the site's state goes to the shard that has its key."""

from __future__ import annotations

import pytest

from engine.runtime.rescale import rescaled
from engine.state.segments import DictSegments
from engine.testing.driven import Driven
from pipelines.contracts.records import Change
from tests.pipelines.incidents.cases import MINUTE, T0, Feed, news, outage

DAY = 1_440 * MINUTE


@pytest.mark.parametrize(("before", "after"), [(1, 4), (2, 3), (4, 1)])
def test_an_incident_goes_on_in_another_number_of_shards(before: int, after: int) -> None:
    feed = Feed(before)
    feed.place("vm", "zhost")
    feed.send(outage(["vm", "zhost"], 0, 5 * MINUTE), 2 * MINUTE)
    (opened,) = feed.standing
    _rescale(feed, after)
    feed.send([], 20 * MINUTE)
    (resolved,) = feed.standing
    assert (resolved.id, resolved.status) == (opened.id, "resolved")
    assert resolved.revision > opened.revision
    assert resolved.candidates[0].entity == "zhost", "the topology is known in all shards"


@pytest.mark.parametrize(("before", "after"), [(2, 3), (3, 2), (4, 1)])
def test_what_was_done_before_an_incident_that_lasts_for_days_is_still_named(before: int, after: int) -> None:
    feed = Feed(before)
    feed.say(Change(id="ci/1", time=T0 - MINUTE, message="cart 1.4"))
    _goes_on(feed, 0)
    (opened,) = feed.standing
    feed.acknowledge(opened.id, 3 * MINUTE)
    for at in range(DAY // 2, 4 * DAY, DAY // 2):
        _goes_on(feed, at)
    # with this message each shard forgets what it has no use for
    feed.say(Change(id="ci/2", time=T0 + 4 * DAY - MINUTE, message="db 7"))
    _goes_on(feed, 4 * DAY - MINUTE)
    _rescale(feed, after)
    _goes_on(feed, 4 * DAY)
    feed.send([], 6 * DAY)
    (resolved,) = feed.standing
    assert (resolved.status, resolved.acknowledged_by) == ("resolved", "ann")
    assert [change.id for change in resolved.changes] == ["ci/1"]


def _goes_on(feed: Feed, at: int) -> None:
    feed.send([news("vm", f"metric-{n}", at, "absence", since=T0) for n in range(20)], at + 2 * MINUTE)


def _rescale(feed: Feed, shards: int) -> None:
    job, states = feed.run.job, [DictSegments() for _ in range(shards)]
    for state, values in zip(states, rescaled(job, [s.values for s in feed.run.states], shards), strict=True):
        state.values = values
    feed.run = Driven(job, shards, states)
