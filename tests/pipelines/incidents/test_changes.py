"""What was done at a site before an incident: which changes it names, in which order, for how long."""

from __future__ import annotations

from fnmatch import fnmatchcase
from random import Random
from time import process_time
from typing import Any

import polars as pl
import pytest

from engine.state.segments import ShardState
from pipelines.contracts.records import Change, Incident
from pipelines.jobs.incidents.changes import BEFORE, earlier_changes
from pipelines.jobs.incidents.site_messages import MOST_OF_CHANGES, LastMessages
from tests.pipelines.incidents.cases import MINUTE, T0, Feed, episode, news

ONSET = 40 * MINUTE


def change(name: str, at: int, machines: tuple[str, ...] = (), **more: Any) -> Change:
    """A deployment ``at`` milliseconds after `T0`."""
    return Change(id=name, time=T0 + at, message=f"release {name}", kind="deployment", machines=list(machines), **more)


def incident(*said: Change, host: str = "") -> Incident:
    """The incident of a machine ``web-1`` that is novel from `ONSET` on, after some changes."""
    feed = Feed()
    if host:
        feed.place("web-1", host)
    feed.say(*said)
    feed.send(episode("web-1", "cpu", ONSET, ONSET + 5 * MINUTE), ONSET + MINUTE)
    (one,) = feed.standing
    return one


def test_the_title_ends_with_the_last_change_of_its_machine() -> None:
    one = incident(change("a", ONSET - 9 * MINUTE, ("web-*",)), change("b", ONSET - 3 * MINUTE, ("web-1",)))
    assert one.message.endswith('; 3 min after the deployment "release b"')
    assert [(each.id, each.entity, each.since) for each in one.changes] == [
        ("b", "web-1", T0 + ONSET - 3 * MINUTE),
        ("a", "web-1", T0 + ONSET - 9 * MINUTE),
    ]


def test_its_machines_come_before_what_they_run_on_and_that_before_the_whole_site() -> None:
    one = incident(
        change("site", ONSET - MINUTE),
        change("host", ONSET - 2 * MINUTE, ("host-7",)),
        change("own", ONSET - 9 * MINUTE, ("web-1",)),
        change("other", ONSET - MINUTE, ("db-1", "web-10")),
        host="host-7",
    )
    assert [(each.id, each.entity) for each in one.changes] == [("own", "web-1"), ("host", "host-7"), ("site", None)]


@pytest.mark.parametrize(
    ("at", "end", "named"),
    [
        (ONSET - BEFORE, None, True),
        (ONSET - BEFORE - 1, None, False),
        (ONSET - BEFORE - MINUTE, ONSET - BEFORE, True),
        (ONSET + 10_000, None, True),
        (ONSET + 10_001, None, False),
    ],
)
def test_a_change_is_named_if_it_ended_in_the_half_hour_before_and_began_before_the_first_report(
    at: int, end: int | None, named: bool
) -> None:
    one = incident(change("a", at, ("web-1",), end=None if end is None else T0 + end))
    assert bool(one.changes) is named


def test_at_most_five_are_named() -> None:
    one = incident(*(change(f"{n}", ONSET - n * MINUTE, ("web-1",)) for n in range(1, 9)))
    assert [each.id for each in one.changes] == ["1", "2", "3", "4", "5"]


def test_a_change_that_is_heard_of_after_the_incident_is_named_by_its_next_revision() -> None:
    feed = Feed()
    feed.send(episode("web-1", "cpu", ONSET, ONSET + 5 * MINUTE), ONSET + MINUTE)
    (before,) = feed.standing
    feed.say(change("a", ONSET - MINUTE, ("web-1",)))
    (after,) = feed.standing
    assert (before.id, before.changes) == (after.id, []) and after.revision > before.revision
    assert [each.id for each in after.changes] == ["a"]
    feed.say(change("a", ONSET - MINUTE + 1, ("db-1",)))
    (corrected,) = feed.standing
    assert corrected.changes == [], "a later message with the same id replaces it"


@pytest.mark.parametrize("seed", range(5))
def test_the_order_of_changes_and_micro_batches_does_not_matter(seed: int) -> None:
    random = Random(seed)
    said = [
        change(f"{n % 7}", ONSET - random.randrange(40 * MINUTE), random.choice([(), ("web-1",), ("db-*",)]))
        for n in range(20)
    ]
    whole = incident(*said)
    feed = Feed()
    random.shuffle(said)
    middle = random.randrange(20)
    for each in said[:middle]:
        feed.say(each)
    feed.send(episode("web-1", "cpu", ONSET, ONSET + 5 * MINUTE), ONSET + MINUTE)
    for each in said[middle:]:
        feed.say(each)
    (one,) = feed.standing
    assert (one.changes, one.message) == (whole.changes, whole.message)


def test_an_incident_that_lasts_for_days_goes_on_to_name_its_change_and_others_are_forgotten() -> None:
    feed = Feed()
    feed.say(change("own", ONSET - MINUTE, ("web-1",)), change("other", ONSET - MINUTE, ("db-1",)))
    day = 24 * 60 * MINUTE
    for hours in range(0, 72, 12):
        at = ONSET + hours * 60 * MINUTE
        feed.send([news("web-1", "cpu", at, since=T0 + ONSET)], at + MINUTE)
    feed.send(episode("app-1", "disk", 3 * day, 4 * day)[:1], 3 * day + MINUTE)
    feed.say(change("new", 3 * day - MINUTE, ("app-1",)))
    assert {each.machines[0].entity: [c.id for c in each.changes] for each in feed.standing} == {
        "web-1": ["own"],
        "app-1": ["new"],
    }
    assert set(ShardState(feed.run.states[0]).notes["site"]["texts"]["change"]) == {"own", "new"}


def test_of_too_many_changes_of_an_hour_the_first_ones_are_kept_and_what_ends_machines_has_its_own_bound() -> None:
    hour = 60 * MINUTE
    messages, wanted = LastMessages({"change": {}}), set()
    for kind in ("deployment", "ended", "cordon"):
        for n in range(2 * MOST_OF_CHANGES // 1_000):
            for begin in (0, hour):
                one = Change(id=f"{kind}{begin}-{n}", time=T0 + begin + n, message="x" * 900, kind=kind)
                messages.texts["change"][one.id] = one.to_json().decode()
    size = len(next(iter(messages.texts["change"].values())))
    messages.bound_changes()
    kept = messages.texts["change"]
    for kind, begins in (("deployment", (0, hour)), ("ended", (0, hour)), ("cordon", (0,))):
        for begin in begins:
            wanted |= {f"{kind}{begin}-{n}" for n in range(MOST_OF_CHANGES // (size + 10))}
    assert wanted <= kept.keys() and len(kept) <= len(wanted) * 1.1
    assert sum(map(len, kept.values())) <= 5 * MOST_OF_CHANGES


@pytest.mark.parametrize("size", [1, 2, 4])
def test_of_too_many_changes_the_same_ones_are_kept_whatever_the_micro_batches(size: int) -> None:
    """The third is too much; the fourth has room, whether the third was given up before it came or with it."""
    large = [change(f"{n}", n, tuple(f"{m:03d}{'x' * 490}" for m in range(100))) for n in range(3)]
    said, messages = [*large, change("small", 3)], LastMessages()
    assert sum(len(each.to_json()) for each in large[:2]) < MOST_OF_CHANGES < sum(len(e.to_json()) for e in large)
    for begin in range(0, 4, size):
        messages.take(pl.DataFrame({"change": [each.to_json().decode() for each in said[begin : begin + size]]}))
        messages.bound_changes()
    assert [each.id for each in messages.changes()] == ["0", "1", "small"]


@pytest.mark.parametrize("ahead", [True, False], ids=["all at once", "as they come"])
def test_changes_that_are_read_long_before_their_time_hide_none_that_are_named_now(ahead: bool) -> None:
    """A replay reads the changes of months before the first verdict."""
    feed, day = Feed(), 24 * 60 * MINUTE
    later = [
        change(f"{n}", day + n * MINUTE, ("db-1",), source="x" * 500, url="y" * 1_000, by="z" * 200)
        for n in range(2 * (1 << 20) // 1_800)
    ]
    feed.say(change("own", ONSET - MINUTE, ("web-1",)), *(later if ahead else ()))
    feed.send(episode("web-1", "cpu", ONSET, ONSET + 5 * MINUTE), ONSET + MINUTE)
    (one,) = feed.standing
    assert [each.id for each in one.changes] == ["own"]
    if ahead:
        assert set(ShardState(feed.run.states[0]).notes["site"]["texts"]["change"]) == {"own"}


def test_a_cordon_that_is_taken_back_later_is_known_as_it_was_at_the_watermark() -> None:
    """Whether what is read was written before or after the watermark's time makes no difference to its incidents."""
    told = []
    for ahead in (True, False):
        feed = Feed()
        cordon = change("c", ONSET, ("node-1",)).model_copy(update={"kind": "cordon"})
        back = change("u", ONSET + 60 * MINUTE, ("node-1",)).model_copy(update={"kind": "uncordon"})
        feed.say(cordon, *([back] if ahead else []))
        feed.send([news("node-1", "_machine", ONSET + MINUTE, "absence", record_score=52.0)], ONSET + 3 * MINUTE)
        if not ahead:
            feed.say(back)
        before = len(feed.standing)
        feed.send([], ONSET + 71 * MINUTE)
        told.append((before, [each.message for each in feed.standing]))
    assert told[0] == told[1] and told[0][0] == 0 and len(told[0][1]) == 1


def test_a_change_of_days_is_kept_until_it_has_ended_for_long() -> None:
    feed = Feed()
    feed.say(change("long", ONSET - 3 * 24 * 60 * MINUTE, ("web-1",), end=T0 + ONSET - MINUTE))
    feed.send(episode("db-1", "cpu", ONSET - 10 * MINUTE, ONSET - 5 * MINUTE), ONSET - 2 * MINUTE)
    feed.send(episode("web-1", "cpu", ONSET, ONSET + 5 * MINUTE), ONSET + MINUTE)
    assert {each.id for one in feed.standing for each in one.changes} == {"long"}


def test_the_first_machine_that_any_glob_matches_is_named() -> None:
    """Against `fnmatch`, of whose patterns names without brackets have the same meaning."""
    random = Random(5)
    for _ in range(300):
        names = list(dict.fromkeys("".join(random.choices("ab-", k=random.randint(1, 4))) for _ in range(8)))
        globs = ["".join(random.choices("ab-*?", k=random.randint(1, 4))) for _ in range(random.randint(1, 3))]
        own, higher = names[:3], names[3:]
        done = [change("a", 0, tuple(globs))]
        found = earlier_changes(own, {own[0]: higher}, done, T0 + MINUTE, T0 + MINUTE)
        expected = next((name for name in names if any(fnmatchcase(name, glob) for glob in globs)), None)
        assert [each.entity for each in found] == ([] if expected is None else [expected]), (names, globs)


def test_globs_of_many_stars_do_not_hold_up_a_large_incident() -> None:
    machines = [f"shop-web-{n:04d}.eu-central.example" for n in range(1_000)]
    done = [change(f"{n}", 0, tuple(f"{'*a' * 20}{n}-{m}" for m in range(100))) for n in range(20)]
    began = process_time()
    assert earlier_changes(machines, {}, done, T0 + MINUTE, T0 + MINUTE) == []
    assert process_time() - began < 1
