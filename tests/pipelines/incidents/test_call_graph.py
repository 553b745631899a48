"""Services that call several others: which novelties are one incident then, and what its title says of the calls."""

from __future__ import annotations

import time

import pytest

from pipelines.contracts.records import Placement
from pipelines.jobs.incidents.bursts import Rules
from pipelines.jobs.incidents.episode import Episode
from pipelines.jobs.incidents.grouping import Site, incidents
from pipelines.jobs.incidents.topology import Topology
from tests.pipelines.incidents.cases import MINUTE, STEP, T0, Feed, calls, episode

CALLS = {"web": ("cart", "payment"), "mobile": ("cart",), "cart": ("db",)}


def feed() -> Feed:
    made = Feed()
    for name, called in CALLS.items():
        made.place(name, None, calls=called)
    return made


def shows(entity: str, start: int, metrics: str = "abc") -> list[dict[str, object]]:
    return [row for name in metrics for row in episode(entity, f"{entity}.{name}", start, 10 * MINUTE)]


def test_a_service_and_all_that_call_it_are_one_incident_though_they_show_different_metrics() -> None:
    site = feed()
    site.send([*shows("cart", 0), *shows("web", STEP), *shows("mobile", 2 * STEP)], 5 * MINUTE)
    assert [{m.entity for m in each.machines} for each in site.standing] == [{"cart", "web", "mobile"}]
    assert site.standing[0].message.endswith("; 2 machines that depend on it show it")


def test_a_service_of_which_a_caller_is_novel_says_which_depends_on_which() -> None:
    site = feed()
    site.send([*shows("payment", 0), *shows("web", 4 * STEP)], 5 * MINUTE)
    assert site.standing[0].message.endswith("; web, which depends on it, shows it")


def test_services_that_do_not_call_each_other_are_two_incidents() -> None:
    site = feed()
    site.send([*shows("payment", 0), *shows("mobile", STEP)], 5 * MINUTE)
    assert len(site.standing) == 2


def test_a_service_runs_on_its_host_and_calls_others_and_is_one_incident_with_both() -> None:
    site = feed()
    site.place("web", "host", at=1, calls=CALLS["web"])
    site.send([*shows("host", 0), *shows("cart", 0), *shows("web", STEP)], 5 * MINUTE)
    assert [{m.entity for m in each.machines} for each in site.standing] == [{"host", "cart", "web"}]


def test_two_services_that_share_one_they_depend_on_are_not_set_apart_by_the_topology() -> None:
    """Two machines that show the same two metrics are one incident unless they have no root in common."""
    alike = [
        row for entity in ("web", "mobile") for name in ("cpu", "load") for row in episode(entity, name, 0, MINUTE)
    ]
    site = feed()
    site.send(alike, 2 * MINUTE)
    assert len(site.standing) == 1
    apart = Feed()
    apart.place("web", None, calls=["payment"])
    apart.place("mobile", None, calls=["cart"])
    apart.send(alike, 2 * MINUTE)
    assert len(apart.standing) == 2


def test_all_services_of_a_circle_and_those_that_call_it_have_the_same_one_on_top() -> None:
    topology = calls({"a": "b", "b": "c", "c": "a", "x": "a"})
    assert [topology.roots(name, T0) for name in "abcx"] == [frozenset("a")] * 4, "the first by name stands for it"
    assert topology.around([("x", T0)])[0] == {"x": ("a",), "a": ("b",), "b": ("c",), "c": ("a",)}


def test_what_a_machine_calls_does_not_change_when_it_moves() -> None:
    moved = Placement(entity="web", parent="b", moved_from="a", depends_on=["cart"], time=T0)
    topology = Topology({"web": moved})
    assert topology.above("web", T0 - 1) == ("a", "cart") and topology.above("web", T0) == ("b", "cart")


@pytest.mark.parametrize("size", [60])
def test_a_site_in_which_every_service_calls_every_other_is_grouped_in_a_second(size: int) -> None:
    names = [f"s-{n:03}" for n in range(size)]
    site = Feed()
    with site.at_once():
        for name in names:
            site.place(name, None, calls=[other for other in names if other != name])
    began = time.perf_counter()
    site.send([row for name in names for row in shows(name, 0, "ab")], 5 * MINUTE)
    assert time.perf_counter() - began < 2
    assert site.standing[0].machine_count == size


def test_a_service_that_flaps_is_one_incident_whichever_of_its_callers_shows_it() -> None:
    """A service that is called is no effect of those that call it, as a host is of its VMs: it goes on by itself."""
    site = Feed()
    for n in range(6):
        site.place(f"web-{n}", None, calls=("db",))
    for n in range(6):
        at = 8 * n * MINUTE
        site.send(
            [*episode("db", "db.latency", at, at + 2 * MINUTE), *episode(f"web-{n}", "errors", at, at + 2 * MINUTE)],
            at + 3 * MINUTE,
        )
    assert len(site.standing) == 1


@pytest.mark.parametrize("shape", ["circle", "chain of hosts", "star", "circle outside"])
def test_ten_thousand_services_are_grouped_in_bounded_time_whatever_they_call(shape: str) -> None:
    """Pairs of 10,000 machines are 50 million: more than can be looked at in the 10 s that this may take."""
    size = 10_000
    names = [f"s-{n:05}" for n in range(size)]
    if shape == "star":
        placements = [Placement(entity=name, depends_on=["db"], time=T0) for name in names]
    elif shape == "chain of hosts":
        placements = [Placement(entity=name, parent=names[n + 1], time=T0) for n, name in enumerate(names[:-1])]
    else:
        placements = [Placement(entity=name, depends_on=[names[n - 1]], time=T0) for n, name in enumerate(names)]
    novel = names[: size // 2 : 2] if shape == "circle outside" else [*names, "db"]
    some = [Episode(name, m, T0, T0 + STEP, T0 + STEP, None, 90.0) for name in novel for m in ("cpu", "mem")]
    site = Site("default", Topology({each.entity: each for each in placements}), {}, {})
    began = time.process_time()
    found = incidents(some, site, Rules(), T0 + MINUTE)
    assert time.process_time() - began < 10
    assert sum(each.incident.machine_count for each in found) == len(novel)
    if shape == "star":
        (only,) = found
        assert only.incident.candidates[0].entity == "db"
        assert "10000 of the other machines depend on it" in only.incident.candidates[0].reason
