"""Which novelties are one incident, and what the incident says."""

from __future__ import annotations

import time

import pytest

from pipelines.contracts import topics
from tests.pipelines.incidents.cases import MINUTE, STEP, T0, Feed, episode, news, outage


def test_an_outage_of_thirty_machines_with_twenty_metrics_each_is_one_incident() -> None:
    feed = Feed()
    feed.send(outage([f"m{n:02}" for n in range(30)], 0, 5 * MINUTE), 5 * MINUTE)
    (only,) = feed.standing
    assert (only.machine_count, only.series_count, only.severity, only.status) == (30, 600, "critical", "open")
    assert only.start == T0 and len(only.machines) == 30 and len(only.metrics) == 20


def test_outages_below_two_hosts_at_one_time_are_two_incidents_and_each_names_its_host_first() -> None:
    feed = Feed()
    for host in "ab":
        for vm in range(3):
            feed.place(f"vm-{host}{vm}", f"z-host-{host}")
    for host in "ab":
        vms = [f"vm-{host}{vm}" for vm in range(3)]
        feed.send(outage(vms, 0, 5 * MINUTE), -MINUTE)
        feed.send(outage([f"z-host-{host}"], 2 * STEP, 5 * MINUTE, metrics=5), -MINUTE)
    feed.send([], 5 * MINUTE)
    assert sorted(each.candidates[0].entity for each in feed.standing) == ["z-host-a", "z-host-b"]
    assert [each.machine_count for each in feed.standing] == [4, 4]
    assert "3 of the other machines depend on it" in feed.standing[0].candidates[0].reason
    first = feed.standing[0]
    assert sum(each.share for each in first.candidates) + (first.unknown_share or 0) == pytest.approx(1, abs=0.01)


@pytest.mark.parametrize("down", [4, 10])
def test_a_host_is_named_first_though_one_of_its_vms_had_a_novelty_of_its_own_before(down: int) -> None:
    """At most as long before as the incident still holds that novelty: quiet and reopen are five minutes each."""
    feed = Feed()
    for vm in "abc":
        feed.place(vm, "host")
    rows = outage(["a", "b", "c", "host"], down * MINUTE, (down + 5) * MINUTE)
    feed.send([*episode("b", "cpu", MINUTE, 2 * MINUTE), *rows], (down + 5) * MINUTE)
    (only,) = feed.standing
    assert only.candidates[0].entity == "host"
    assert only.candidates[0].reason.startswith(f"it began {down - 1} min after the first")


def test_two_vms_of_a_host_that_change_in_different_ways_at_one_time_are_two_incidents() -> None:
    """The host, which began with the first of them, shows what that one does."""
    feed = Feed()
    feed.place("a", "host"), feed.place("b", "host")
    shift = [row for metric in ("cpu", "http.requests", "net") for row in episode("a", metric, 0, MINUTE)]
    seen = [row for metric in ("cpu", "load") for row in episode("host", metric, 0, MINUTE)]
    release = [row for metric in ("http.latency", "mem") for row in episode("b", metric, STEP, MINUTE)]
    feed.send([*shift, *seen, *release], 2 * MINUTE)
    assert [[m.entity for m in each.machines] for each in feed.standing] == [["a", "host"], ["b"]]


def test_a_host_that_began_before_its_vms_is_one_incident_with_all_of_them_whatever_they_show() -> None:
    feed = Feed()
    feed.place("a", "host"), feed.place("b", "host")
    rows = [*episode("host", "disk.await", 0, MINUTE), *episode("a", "cpu", STEP, MINUTE)]
    feed.send([*rows, *episode("b", "http.latency", 2 * STEP, MINUTE)], 2 * MINUTE)
    (only,) = feed.standing
    assert [m.entity for m in only.machines] == ["host", "a", "b"]


@pytest.mark.parametrize(("count", "incidents"), [(2, 2), (3, 1)])
def test_three_vms_of_a_host_are_no_coincidence_whatever_they_show(count: int, incidents: int) -> None:
    feed = Feed()
    rows = episode("host", "load", 0, MINUTE)
    for n in range(count):
        feed.place(f"vm-{n}", "host")
        rows += episode(f"vm-{n}", f"m{n}", 0, MINUTE)
    feed.send(rows, 2 * MINUTE)
    assert len(feed.standing) == incidents


def test_a_host_that_shows_what_another_of_its_vms_does_begins_a_new_incident() -> None:
    """The host would be in both: it was quiet for two minutes, and two VMs changed in turn."""
    feed = Feed()
    feed.place("a", "host"), feed.place("b", "host")
    for name, at in (("a", 0), ("b", 5 * MINUTE)):
        rows = [row for machine in (name, "host") for row in episode(machine, "cpu", at, at + 3 * MINUTE)]
        feed.send(rows, at + 4 * MINUTE)
    assert [[m.entity for m in each.machines] for each in feed.standing] == [["a", "host"], ["b", "host"]]


def test_a_host_that_shows_what_two_vms_do_in_turn_without_a_break_makes_no_incident_of_both() -> None:
    """So people are told of the second one, too."""
    feed = Feed()
    feed.place("a", "host"), feed.place("b", "host")
    feed.send([*episode("a", "cpu", 0, 3 * MINUTE), *episode("host", "cpu", 0, 9 * MINUTE)], 4 * MINUTE)
    later = [row for machine in ("b", "host") for row in episode(machine, "net", 5 * MINUTE, 8 * MINUTE)]
    feed.send(later, 9 * MINUTE)
    assert [[m.entity for m in each.machines] for each in feed.standing] == [["a", "host"], ["b", "host"]]


def test_a_vm_that_moves_joins_the_host_that_it_left_and_the_one_that_it_went_to() -> None:
    """An outage on a third host at the same time shows the same on that host, but is another incident."""
    feed = Feed()
    feed.place("vm-a", "host-a"), feed.place("vm-m", "host-c", "host-b", at=0)
    rows = [*outage(["vm-a"], 0, 2 * MINUTE), *outage(["host-a", "host-b", "host-c"], 0, 2 * MINUTE, metrics=5)]
    feed.send(rows, 3 * MINUTE)
    assert [[m.entity for m in each.machines] for each in feed.standing] == [["host-a", "vm-a"], ["host-b", "host-c"]]
    assert feed.standing[1].message.startswith("vm-m moved from host-b to host-c; ")


def test_a_move_at_another_time_explains_nothing() -> None:
    """`incidents.related` is three minutes."""
    feed = Feed()
    feed.place("vm-m", "host-c", "host-b", at=-4 * MINUTE)
    feed.send([*episode("host-b", "cpu", 0, MINUTE), *episode("host-c", "cpu", 0, MINUTE)], 2 * MINUTE)
    assert len(feed.standing) == 2 and "moved" not in feed.standing[0].message


def test_without_topology_the_machine_that_began_first_is_the_first_candidate() -> None:
    feed = Feed()
    feed.send([*outage(["b", "c"], 0, 5 * MINUTE), *outage(["a"], 3 * STEP, 5 * MINUTE)], 5 * MINUTE)
    (only,) = feed.standing
    assert [c.entity for c in only.candidates] == ["b", "c", "a"]
    assert [m.entity for m in only.machines] == ["b", "c", "a"], "onset order"


def test_two_machines_that_show_different_things_at_one_time_are_two_incidents() -> None:
    feed = Feed()
    feed.send([*episode("a", "cpu", 0, MINUTE), *episode("b", "http.latency", 0, MINUTE)], 2 * MINUTE)
    assert [each.machine_count for each in feed.standing] == [1, 1]


def test_one_common_metric_is_a_coincidence_on_two_machines_but_not_on_three() -> None:
    feed = Feed()
    feed.send([*episode("a", "cpu", 0, MINUTE), *episode("b", "cpu", 0, MINUTE)], 2 * MINUTE)
    assert len(feed.standing) == 2
    feed = Feed()
    feed.send([row for name in "abc" for row in episode(name, "cpu", 0, MINUTE)], 2 * MINUTE)
    assert len(feed.standing) == 1


def test_the_same_thing_at_another_time_is_another_incident() -> None:
    feed = Feed()
    feed.send([*outage(["a", "b"], 0, MINUTE), *outage(["c", "d"], 3 * MINUTE, 4 * MINUTE)], 5 * MINUTE)
    assert [[m.entity for m in each.machines] for each in feed.standing] == [["a", "b"], ["c", "d"]]


def test_the_log_of_a_machine_and_its_metrics_are_one_incident() -> None:
    feed = Feed()
    feed.send([news("a", "logs", STEP, template="disk <*> failed")], 0, topics.LOG_NEWS)
    feed.send(episode("a", "cpu", 0, 2 * MINUTE), MINUTE)
    (only,) = feed.standing
    assert [metric.metric for metric in only.metrics] == ["cpu", "logs"]
    assert only.message == 'a: cpu unusual, its log unusual; the log of a changed: "disk <*> failed"'


def test_one_series_is_less_severe_than_many_with_the_same_score() -> None:
    """Score 70 is evidence of 7/3 less 0.4 at ten seconds; 0.63 of it for one series, 0.88 for sixteen."""
    feed = Feed()
    feed.send(episode("a", "cpu", 0, MINUTE, score=70.0), 2 * MINUTE)
    feed.send([row for n in range(16) for row in episode("b", f"m{n}", 0, MINUTE, score=70.0)], 2 * MINUTE)
    found = [(each.series_count, each.severity, each.severity_score) for each in feed.standing]
    assert found == [(16, "major", 63), (1, "major", 55)]


def test_normal_verdicts_are_no_part_of_an_incident() -> None:
    feed = Feed()
    feed.send([news("a", "cpu", 0, "normal", revision=1, since=None, incident_state=None)], MINUTE)
    assert feed.standing == []


def test_weak_novelties_of_few_series_are_no_incident_until_there_are_enough() -> None:
    feed = Feed()
    feed.send([news("a", f"m{n}", 0, record_score=58.0) for n in range(4)], MINUTE)
    assert feed.standing == []
    feed.send([news("a", "m4", MINUTE, record_score=58.0)], 2 * MINUTE)
    (only,) = feed.standing
    assert (only.series_count, only.opened) == (5, T0 + STEP)


def test_a_series_that_stops_is_an_incident_whatever_its_score() -> None:
    feed = Feed()
    feed.send([news("a", "cpu", 0, "absence", record_score=51.0)], MINUTE)
    assert len(feed.standing) == 1


def test_a_replay_that_finds_only_the_last_placements_groups_what_was_before_a_move_as_it_was_grouped_then() -> None:
    """The topic is compacted: after a day it has the placements after the move, with what the machines moved from."""
    rows = [
        *episode("host-1", "cpu", 0, 5 * MINUTE),
        *episode("a", "latency", 2 * MINUTE, 5 * MINUTE),
        *episode("b", "errors", 2 * MINUTE, 5 * MINUTE),
    ]
    live, replay, day = Feed(), Feed(), 24 * 60 * MINUTE
    for vm in "ab":
        live.place(vm, "host-1", at=-MINUTE)
        replay.place(vm, "host-2", moved_from="host-1", at=day)
    live.send(rows, 60 * MINUTE)
    for vm in "ab":
        live.place(vm, "host-2", moved_from="host-1", at=day)
    live.send([], day + 60 * MINUTE)
    replay.send(rows, 60 * MINUTE)
    (once,), (again,) = live.standing, replay.standing
    assert once.machine_count == 3
    assert once.model_copy(update={"revision": 0}) == again.model_copy(update={"revision": 0})


def test_moves_of_long_ago_take_no_time() -> None:
    def seconds(moves: int) -> float:
        feed = Feed()
        with feed.at_once():
            for n in range(moves):
                feed.place(f"vm-{n}", f"host-{n // 50}", moved_from=f"host-{n // 50 + 1}", at=-(10**9) + n)
        feed.send([news(f"m-{k}", f"metric-{k}", 0) for k in range(100)], MINUTE)
        start = time.process_time()
        feed.send([news("other", "mem", MINUTE)], 2 * MINUTE)
        return time.process_time() - start

    assert seconds(2000) < 3 * seconds(0) + 0.05
