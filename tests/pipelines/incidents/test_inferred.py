"""Topology that telemetry tells, beside what people say: what is one incident, and where it is said to have begun."""

from __future__ import annotations

from typing import Any

from engine.state.segments import unpack
from pipelines.jobs.incidents.inferred import SEGMENT
from tests.pipelines.incidents.cases import MINUTE, Feed, episode, outage

DAY = 24 * 60 * MINUTE
PODS = ["shop/cart-7d4b9c6f5-x2x7p", "shop/api-5b6c7d8f9-k8s2v", "shop/web-6f7d8c9b5-q4w5z"]


def shows(entity: str, start: int, score: float = 75.0) -> list[dict[str, Any]]:
    return [row for n in range(2) for row in episode(entity, f"{entity}.{n}", start, 9 * MINUTE, score)]


def test_pods_on_a_node_that_stops_are_one_incident_that_names_the_node() -> None:
    rows = [*outage(["node-1"], 0, 9 * MINUTE), *(row for pod in PODS[:2] for row in shows(pod, 20_000))]
    without, feed = Feed(), Feed()
    for pod in PODS:
        feed.infer(pod, "node-1")
    for each in (without, feed):
        each.send(rows, 5 * MINUTE)
    assert len(without.standing) == 3, "nothing says that they belong together"
    (only,) = feed.standing
    assert only.machine_count == 3 and only.candidates[0].entity == "node-1"


def test_what_a_person_says_counts_until_it_is_taken_back() -> None:
    rows = [*outage(["node-1"], 0, 9 * MINUTE), *shows(PODS[0], 20_000)]
    feed = Feed()
    feed.place(PODS[0], "node-2", at=-MINUTE)
    feed.infer(PODS[0], "node-1", at=0)
    feed.send(rows, 5 * MINUTE)
    assert len(feed.standing) == 2
    feed.place(PODS[0], None, at=MINUTE)
    feed.send([], 5 * MINUTE + 1)
    assert len(feed.standing) == 1, "nobody says anything else any more"


def test_one_thing_that_a_person_says_leaves_the_others_as_they_are_inferred() -> None:
    feed = Feed()
    feed.infer(PODS[0], "node-1")
    feed.place(PODS[0], None, calls=["db"])
    feed.send([*outage(["node-1"], 0, 9 * MINUTE), *shows(PODS[0], 20_000), *shows("db", 0)], 5 * MINUTE)
    (only,) = feed.standing
    assert only.machine_count == 3


def test_a_service_that_calls_another_depends_on_each_of_its_pods() -> None:
    feed = Feed()
    feed.infer("shop/web", depends_on=["shop/cart"])
    feed.infer(PODS[0], "node-1")
    feed.infer(PODS[2], "node-2")
    feed.send([*shows(PODS[0], 0), *shows(PODS[2], 0, 80.0)], 5 * MINUTE)
    (only,) = feed.standing
    assert [each.entity for each in only.candidates] == [PODS[0], PODS[2]]
    assert f"it may show what {PODS[0]} does, on which it depends" in only.candidates[1].reason


def test_a_workload_that_is_said_stands_for_its_pods_whatever_they_are_called() -> None:
    feed = Feed()
    feed.infer("front", depends_on=["shop/store"])
    feed.infer("db-a", "node-1", workload="shop/store")
    feed.send([*shows("front", 0, 80.0), *shows("db-a", 0)], 5 * MINUTE)
    (only,) = feed.standing
    assert only.candidates[0].entity == "db-a"


def test_two_replicas_on_two_nodes_that_show_the_same_are_one_incident() -> None:
    one, other = "shop/cart-7d4b9c6f5-x2x7p", "shop/cart-7d4b9c6f5-b4b5c"
    rows = [row for pod in (one, other) for m in ("errors", "latency") for row in episode(pod, m, 0, 9 * MINUTE)]
    feed, apart = Feed(), Feed()
    feed.infer(one, "node-1")
    feed.infer(other, "node-2")
    feed.send(rows, 5 * MINUTE)
    assert len(feed.standing) == 1
    for n, pod in enumerate((one, other)):
        apart.infer(pod, f"node-{n}", workload=f"shop/other-{n}")
    apart.send(rows, 5 * MINUTE)
    assert len(apart.standing) == 2, "the topology sets them apart"


def test_the_order_of_messages_does_not_matter_and_what_is_gone_is_forgotten() -> None:
    feed = Feed()
    feed.infer(PODS[0], None, at=2 * MINUTE)
    feed.infer(PODS[0], "node-1", at=MINUTE)
    feed.infer(PODS[1], "node-1", at=MINUTE)
    feed.send([*outage(["node-1"], 0, 9 * MINUTE), *shows(PODS[0], 20_000)], 5 * MINUTE)
    assert len(feed.standing) == 2, "the pod has no place any more"
    feed.send([*episode("other", "m", 3 * DAY, 3 * DAY + MINUTE)], 4 * DAY)
    kept = feed.run.states[0].get(SEGMENT)
    assert kept and unpack(kept)["places"]["entity"].to_list() == [PODS[1]]
