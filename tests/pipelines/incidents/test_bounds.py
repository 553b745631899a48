"""What one incident may take in: bounds in time, and for machines without a link."""

from __future__ import annotations

import gc
import random
import time
from collections.abc import Iterable

from hypothesis import given, settings
from hypothesis import strategies as st

from engine.state.segments import ShardState, unpack
from pipelines.jobs.incidents.bursts import Burst, Rules
from pipelines.jobs.incidents.episode import Episode
from pipelines.jobs.incidents.links import linked
from pipelines.jobs.incidents.topology import Topology
from tests.pipelines.incidents.cases import MINUTE, STEP, Feed, episode, news, placed

RULES = Rules()
SOON = RULES.quiet + RULES.reopen
"""Ten minutes."""
NOWHERE = Topology({})


def grouped(episodes: Iterable[Episode], topology: Topology, rules: Rules, now: int) -> list[tuple[Burst, ...]]:
    """The bursts of each group."""
    return [each.bursts for each in linked(episodes, topology, rules, now)]


def made(entity: str, metric: str, since: int, until: int, score: float = 60.0, *, absent: bool = False) -> Episode:
    return Episode(entity, metric, since, since + STEP, since + STEP, until, score, absent)


def test_what_begins_late_on_a_machine_and_shows_something_else_is_an_incident_of_its_own() -> None:
    feed = Feed()
    feed.send([news("a", "cpu", 0)], MINUTE)
    feed.send(episode("a", "disk", SOON, SOON + MINUTE), SOON + 2 * MINUTE)
    assert len(feed.standing) == 1, "ten minutes after the beginning it is still the same"
    feed.send(episode("a", "http.latency", SOON + STEP, SOON + MINUTE), SOON + 2 * MINUTE)
    feed.send(episode("a", "net", 2 * SOON, 2 * SOON + MINUTE), 2 * SOON + 2 * MINUTE)
    assert [[m.metric for m in each.metrics] for each in feed.standing][-1] == ["net"]


def test_the_same_thing_that_comes_again_and_again_stays_one_incident() -> None:
    feed = Feed()
    for turn in range(6):
        at = turn * 8 * MINUTE
        feed.send(episode("a", "cpu", at, at + MINUTE), at + 2 * MINUTE)
    assert len(feed.incidents) == 1


def test_weak_novelties_of_many_machines_are_not_one_incident() -> None:
    """As a lower threshold of the detector makes them: 24 machines of which one after another is a little unusual."""
    weak = [made(f"m{n:02}", "cpu", n * STEP, n * STEP + MINUTE, 40.0) for n in range(24)]
    assert max(len(group) for group in grouped(weak, NOWHERE, RULES, 10**9)) == 1
    strong = [made(each.entity, "cpu", each.since, each.since + MINUTE, 60.0) for each in weak]
    assert len(grouped(strong, NOWHERE, RULES, 10**9)) == 1


def test_machines_that_show_the_same_one_after_another_are_one_incident_for_ten_minutes_or_many_for_an_hour() -> None:
    rolling = [made(f"m{n:02}", "cpu", n * 50_000, n * 50_000 + MINUTE) for n in range(100)]
    groups = grouped(rolling, NOWHERE, RULES, 10**9)
    spans = [max(b.onset for b in group) - min(b.onset for b in group) for group in groups]
    assert 5 * SOON < max(spans) <= 6 * SOON
    for group, span in zip(groups, spans, strict=True):
        assert span <= min(max(len(group) // 3, 1), 6) * SOON


def test_a_weak_novelty_belongs_to_the_strong_one_of_its_machine_that_begins_with_it() -> None:
    some = [made("a", "cpu", 0, MINUTE), made("a", "mem", 30_000, MINUTE, 40.0), made("b", "mem", 0, MINUTE, 40.0)]
    assert sorted(len({b.entity for b in g}) for g in grouped(some, NOWHERE, RULES, 10**9)) == [1, 1]


found = st.builds(
    made,
    st.sampled_from("abcdefgh"),
    st.sampled_from(["cpu", "mem", "net", "logs"]),
    st.integers(0, 200).map(lambda n: n * STEP),
    st.integers(300, 400).map(lambda n: n * STEP),
    st.sampled_from([35.0, 45.0, 55.0, 80.0]),
)
silences = st.builds(
    lambda entity, since: made(entity, "_machine", since, since + MINUTE, 52.0, absent=True),
    st.sampled_from("abcdefgh"),
    st.integers(0, 200).map(lambda n: n * STEP),
)
sites = st.lists(st.one_of(found, silences), min_size=1, max_size=30, unique_by=lambda e: (e.entity, e.metric, e.since))
topologies = st.sampled_from([{}, {"b": "a", "c": "a", "d": "a"}, {"b": "a", "d": "c", "f": "e", "g": "e"}])


@settings(max_examples=60, deadline=None)
@given(sites, topologies, st.randoms(use_true_random=False))
def test_groups_do_not_depend_on_the_order_of_episodes(
    some: list[Episode], parents: dict[str, str], shuffle: random.Random
) -> None:
    once = grouped(some, placed(parents), RULES, 10**9)
    mixed = list(some)
    shuffle.shuffle(mixed)
    assert grouped(mixed, placed(parents), RULES, 10**9) == once
    assert sorted(e.order for g in once for b in g for e in b.episodes) == sorted(e.order for e in some), "all, once"


@settings(max_examples=60, deadline=None)
@given(sites)
def test_on_one_machine_nothing_joins_later_than_ten_minutes_after_what_it_does_not_resemble(
    some: list[Episode],
) -> None:
    """Each burst has one in its group that it resembles, or the group, or the strong one that it joined, is younger."""
    alone = [Episode(**{**{n: getattr(e, n) for n in e.__slots__}, "entity": "a"}) for e in some]
    unique = list({(e.metric, e.since): e for e in alone}.values())
    for group in grouped(unique, NOWHERE, RULES, 10**9):
        for burst in group:
            others = [b for b in group if b is not burst]
            like = [b for b in others if 2 * len(b.shows & burst.shows) >= len(b.shows | burst.shows)]
            before = [b.onset for b in others if b.strong or burst.strong]
            near = min(before, default=burst.onset) if burst.strong else max(before, default=burst.onset)
            assert like or burst.onset - near <= SOON


@settings(max_examples=60, deadline=None)
@given(sites, topologies)
def test_without_what_is_over_for_good_the_rest_is_grouped_as_before(
    some: list[Episode], parents: dict[str, str]
) -> None:
    """The job forgets incidents that are over; that must change none of the others."""
    once = grouped(some, placed(parents), RULES, 10**9)
    ends = [max(b.end or 10**9 for b in group) for group in once]
    latest = max(ends)
    kept = [g for g, end in zip(once, ends, strict=True) if end == latest or end + SOON >= 200 * STEP]
    rest = [e for g in kept for b in g for e in b.episodes]
    assert grouped(rest, placed(parents), RULES, 10**9) == kept


def test_one_machine_that_comes_and_goes_does_not_link_others_that_show_the_same_later() -> None:
    """For two days a machine is novel every eight minutes, and every hour another one shows the same for a moment."""
    flaps = [made("a", m, n * 8 * MINUTE, n * 8 * MINUTE + MINUTE) for n in range(360) for m in ("cpu", "mem")]
    others = [(f"b{n}", n * 64 * MINUTE + STEP) for n in range(45)]
    guests = [made(name, metric, at, at + MINUTE) for name, at in others for metric in ("cpu", "mem")]
    groups = grouped(flaps + guests, NOWHERE, RULES, 10**9)
    assert max(len({b.entity for b in group}) for group in groups) <= 2, "only the first began with the machine"
    assert len([g for g in groups if "a" in {b.entity for b in g}]) == 2, "a new incident begins after a day"


def test_no_incident_takes_in_what_begins_later_than_the_longest_time_after_it() -> None:
    """A host and its VM take turns, so that the one or the other is always novel."""
    placed_vm = placed({"vm": "host"})
    turns = [made(name, "cpu", n * 2 * MINUTE, (n + 3) * 2 * MINUTE) for n in range(1500) for name in ("vm", "host")]
    groups = grouped(turns, placed_vm, RULES, 10**10)
    spans = [max(b.onset for b in group) - min(b.onset for b in group) for group in groups]
    assert max(spans) <= RULES.longest
    assert len([span for span in spans if span > RULES.longest / 2]) == 2, "two days are two incidents"


def test_what_a_site_with_machines_that_come_and_go_keeps_does_not_grow_with_days() -> None:
    """Three machines that are novel every five minutes for three days; episodes of a day at most are kept."""

    def kept() -> int:
        return int(unpack(ShardState(feed.run.states[0]).get("incidents"))["parts"].height)

    feed, after, again = Feed(), [], 0
    for day in range(4):
        for hour in range(0, 24, 4):
            at = (day * 24 + hour) * 60 * MINUTE
            times = range(at, at + 4 * 60 * MINUTE, 5 * MINUTE)
            rows = [row for t in times for k in range(3) for row in episode(f"m{k}", "cpu", t + k * STEP, t + MINUTE)]
            feed.send(rows, at + 4 * 60 * MINUTE)
        after.append(kept())
        again = max(again, len({each.id for each in feed.standing}))
    assert max(after) <= 3 * 288 * 1.1
    assert after[3] <= after[1] * 1.1
    assert again >= 3, "each day is an incident of its own"


def test_the_work_grows_no_faster_than_the_number_of_silences_of_a_machine() -> None:
    """Eight times as many take about eight times as long; 64 times if each were compared with each."""

    def seconds(count: int) -> float:
        names = ["_machine" if n % 3 == 0 else f"m{n % 7}" for n in range(count)]
        some = [made("a", name, n * 1000, n * 1000 + MINUTE, absent=True) for n, name in enumerate(names)]
        gc.collect()
        gc.disable()  # what else the process holds is no part of the work
        start = time.process_time()
        grouped(some, NOWHERE, RULES, 10**9)
        took = time.process_time() - start
        gc.enable()
        return took

    assert seconds(16_000) < 30 * max(seconds(2_000) for _ in range(2))
