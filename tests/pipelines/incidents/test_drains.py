"""A drained node: what is planned while it is cordoned, and what is an incident all the same."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from pipelines.contracts.records import Change
from pipelines.contracts.records.change import LONGEST, ChangeKind
from pipelines.jobs.incidents.drains import GRACE
from tests.pipelines.incidents.cases import MINUTE, STEP, T0, Feed, episode
from tests.pipelines.incidents.test_titles import silent

CORDON = 10 * MINUTE
HOUR = 60 * MINUTE


def said(kind: ChangeKind, at: int, node: str = "node-3") -> Change:
    return Change(id=f"{node}-{at}", time=T0 + at, message=f"{node} is {kind}ed", kind=kind, machines=[node])


def told(rows: list[dict[str, Any]], until: int, *changes: Change, runs: dict[str, str] | None = None) -> list[str]:
    """The machines of the incidents, after all came at once."""
    feed = Feed()
    for entity, on in (runs or {}).items():
        feed.infer(entity, on)
    feed.say(*changes)
    feed.send(rows, until)
    return sorted(each.machines[0].entity for each in feed.standing)


@pytest.mark.parametrize(
    ("fell", "back", "uncordoned", "is_told"),
    [
        (CORDON + 15 * MINUTE, CORDON + 23 * MINUTE, CORDON + 25 * MINUTE, False),
        (CORDON, CORDON + 5 * MINUTE, None, False),
        (CORDON - MINUTE, CORDON + 5 * MINUTE, CORDON + 6 * MINUTE, False),
        (CORDON - MINUTE - 10_000, CORDON + 5 * MINUTE, CORDON + 6 * MINUTE, True),
        (CORDON + 9 * MINUTE, CORDON + 5 * HOUR, CORDON + 4 * HOUR, True),
        (CORDON + 9 * MINUTE, CORDON + HOUR + GRACE - STEP, CORDON + HOUR, False),
        (CORDON + 9 * MINUTE, CORDON + HOUR + GRACE, CORDON + HOUR, True),
        (CORDON + HOUR + GRACE - 10_000, CORDON + HOUR + GRACE - 10_000, CORDON + HOUR, False),
        (CORDON + HOUR + GRACE, CORDON + HOUR + GRACE + MINUTE, CORDON + HOUR, True),
        (CORDON + MINUTE, None, None, False),
        (CORDON + MINUTE, None, CORDON + 30 * MINUTE, True),
    ],
    ids=[
        "restarted", "at once", "window before", "dead before", "long after", "some minutes after", "a window more",
        "after its end", "later", "removed", "never back",
    ],
)  # fmt: skip
def test_a_silence_that_begins_in_a_drain_is_an_incident_if_it_lasts_for_more_than_minutes_after_it(
    fell: int, back: int | None, uncordoned: int | None, is_told: bool
) -> None:
    changes = [said("cordon", CORDON)]
    changes += [] if uncordoned is None else [said("uncordon", uncordoned)]
    assert told(silent("node-3", fell, back), 8 * HOUR, *changes) == ["node-3"] * is_told


@pytest.mark.parametrize(("before", "is_told"), [(50_000, True), (STEP, True), (STEP - 1_000, False), (-MINUTE, False)])
def test_a_node_that_turns_bad_and_is_cordoned_then_is_told(before: int, is_told: bool) -> None:
    """Programs cordon nodes whose figures are bad; the cordon is planned, and what led to it is not.

    What began in the window in which the node was cordoned may be what its emptying does.
    """
    rows = episode("node-3", "load", CORDON - before, CORDON + 10 * MINUTE)
    assert told(rows, CORDON + 30 * MINUTE, said("cordon", CORDON)) == ["node-3"] * is_told


def test_a_node_that_does_not_come_back_is_told_when_the_minutes_are_over() -> None:
    feed = Feed()
    feed.say(said("cordon", CORDON))
    feed.send(silent("node-3", CORDON + 5 * MINUTE), CORDON + 6 * MINUTE)
    feed.say(said("uncordon", CORDON + 20 * MINUTE))
    assert feed.send([], CORDON + 20 * MINUTE + GRACE - 1) == []
    feed.send([], CORDON + 20 * MINUTE + GRACE)
    assert [each.message.partition(" since")[0] for each in feed.standing] == ["node-3 has sent nothing"]


def test_what_runs_on_the_node_falls_silent_with_it_and_other_nodes_are_told() -> None:
    runs = {"kube-system/proxy-zk5t2": "node-3", "shop/cart-0": "node-4", "shop/cart-0/app": "kube-system/proxy-zk5t2"}
    rows = [row for name in (*runs, "node-3", "node-4") for row in silent(name, CORDON + MINUTE, CORDON + 9 * MINUTE)]
    changes = said("cordon", CORDON), said("uncordon", CORDON + 9 * MINUTE)
    feed = Feed()
    for entity, on in runs.items():
        feed.infer(entity, on)
    feed.say(*changes)
    alone = [row for row in rows if row["entity"] not in ("shop/cart-0", "node-4")]
    feed.send(alone, 8 * HOUR)
    assert feed.standing == []
    others = [row for row in rows if row["entity"] in ("shop/cart-0", "node-4")]
    assert told(others, 8 * HOUR, *changes, runs=runs) == ["node-4"]


def test_the_machine_of_a_node_may_have_the_name_of_its_exporter() -> None:
    rows = silent("10.0.0.5", CORDON + MINUTE, CORDON + 9 * MINUTE) + silent("shop/log-x2x7p", CORDON + MINUTE)
    runs = {"node-3": "10.0.0.5", "shop/log-x2x7p": "node-3"}
    assert told(rows, 8 * HOUR, said("cordon", CORDON), runs=runs) == []
    assert told(rows, 8 * HOUR, said("cordon", CORDON, "node-4"), runs=runs) != []


@pytest.mark.parametrize(
    ("machine", "begin", "end", "is_told"),
    [
        ("node-3", CORDON + 5 * MINUTE, 7 * HOUR, False),
        ("node-3", CORDON + HOUR + MINUTE, CORDON + HOUR + 6 * MINUTE, False),
        ("node-3", CORDON + HOUR + MINUTE, 7 * HOUR, True),
        ("node-3", CORDON - 5 * MINUTE, 7 * HOUR, True),
        ("kube-system/proxy-zk5t2", CORDON + 5 * MINUTE, 7 * HOUR, True),
    ],
    ids=["emptied", "after its restart", "goes on", "before", "a pod"],
)
def test_what_a_node_does_while_it_is_emptied_is_no_news(machine: str, begin: int, end: int, is_told: bool) -> None:
    changes = said("cordon", CORDON), said("uncordon", CORDON + HOUR)
    runs = {"kube-system/proxy-zk5t2": "node-3"}
    assert told(episode(machine, "load", begin, end), 8 * HOUR, *changes, runs=runs) == [machine] * is_told


def test_an_incident_of_others_names_the_node_too() -> None:
    feed = Feed()
    for node in ("node-3", "node-4"):
        feed.place(node, "rack")
    feed.say(said("cordon", CORDON))
    feed.send(silent("node-3", CORDON + MINUTE) + silent("node-4", CORDON + MINUTE), CORDON + 2 * MINUTE)
    (one,) = feed.standing
    assert {each.entity for each in one.machines} == {"node-3", "node-4"}


def test_a_cordon_of_days_ago_is_known_until_the_drain_is_over_and_a_week_at_most() -> None:
    for days, expected in ((3, []), (8, ["node-3"])):
        feed, fell = Feed(), days * 24 * HOUR
        feed.say(said("cordon", 0))
        for day in range(days):
            feed.send(episode("web", "cpu", day * 24 * HOUR, day * 24 * HOUR + MINUTE), (day * 24 + 1) * HOUR)
        feed.send(silent("node-3", fell, fell + 5 * MINUTE), fell + 6 * MINUTE)
        feed.say(said("uncordon", fell + 6 * MINUTE))
        feed.send([], fell + 30 * HOUR)
        assert [e.machines[0].entity for e in feed.standing if e.machines[0].entity != "web"] == expected
    assert LONGEST == 7 * 24 * HOUR


@pytest.mark.parametrize("seed", range(4))
def test_what_is_told_does_not_depend_on_what_comes_first(seed: int) -> None:
    random = Random(seed)
    silences = [(f"node-{n}", random.randrange(90) * MINUTE, random.randrange(1, 60) * MINUTE) for n in range(5)]
    rows = [row for name, at, length in silences for row in silent(name, at, at + length)]
    changes = [
        said(kind, at * MINUTE, f"node-{n}")
        for n in range(5)
        for kind, at in zip(("cordon", "uncordon"), sorted(random.sample(range(100), 2)), strict=True)
    ]
    once = told(rows, 8 * HOUR, *changes)
    feed = Feed()
    random.shuffle(changes)
    for change in changes:
        feed.say(change)
    for minute in range(0, 160, 20):
        ends = range(T0 + (minute - 20) * MINUTE + 1, T0 + minute * MINUTE + 1)
        feed.send([row for row in rows if row["window_end"] in ends], minute * MINUTE)
    feed.send([], 8 * HOUR)
    assert sorted(each.machines[0].entity for each in feed.standing) == once


@pytest.mark.parametrize("first", [True, False], ids=["once before", "never before"])
def test_a_node_may_be_cordoned_again_when_a_cordon_that_nobody_took_back_no_longer_counts(first: bool) -> None:
    """A node that was replaced under its name: nobody has said of the new one that it may be used."""
    again = CORDON + LONGEST + HOUR
    changes = [*([said("cordon", CORDON)] if first else []), said("cordon", again), said("uncordon", again + HOUR)]
    rows = silent("node-3", again + 15 * MINUTE, again + 23 * MINUTE)
    assert told(rows, again + 8 * HOUR, *changes) == []


def test_a_cordon_is_known_whatever_else_is_done_at_the_site() -> None:
    """What ends machines has a bound of its own, an hour: on a busy cluster jobs end each minute."""
    feed, words = Feed(), "x" * 1_000
    feed.say(said("cordon", CORDON))
    feed.say(
        *(Change(id=f"{n}", time=T0 + HOUR + n, message=words, kind="ended", machines=["a"]) for n in range(1_000))
    )
    feed.send([], 2 * HOUR)
    feed.send(silent("node-3", 3 * HOUR), 3 * HOUR + MINUTE)
    feed.say(said("uncordon", 3 * HOUR + 5 * MINUTE))
    feed.send([], 3 * HOUR + 6 * MINUTE)
    assert feed.standing == []
