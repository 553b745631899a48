"""Changes that programs report over HTTP: what becomes of each form, what is refused, and what an answer says.

The bodies are those that the specifications give: CloudEvents 1.0.2 and its HTTP binding, CDEvents 0.4, Grafana's HTTP
API, Kubernetes' API reference and `kubectl get events -o json`.
"""

from __future__ import annotations

import time
from typing import Any

import httpx
import pytest

from engine.spec.errors import NewnormalError
from pipelines.contracts.records import Change
from pipelines.contracts.settings import Settings
from pipelines.gateway.change_formats import changes_of
from pipelines.query import control_topics

pytestmark = pytest.mark.servers
AT = "2026-11-20T08:30:00Z"
AT_MS = 1_795_163_400_000


def event(name: str = "1", **more: Any) -> dict[str, Any]:
    fixed = {"specversion": "1.0", "id": name, "source": "ci/cart", "type": "dev.cdevents.service.deployed.0.2.0"}
    return {**fixed, "time": AT, "data": {"message": "cart 1.4", "host": "web-1, web-2"}} | more


def nested(levels: int) -> Any:
    """A list in a list, and so on."""
    found: Any = 1
    for _ in range(levels):
        found = [found]
    return found


def shown(changes: list[Change]) -> list[tuple[str, int, str, str, list[str]]]:
    return [(each.id, each.time, each.kind, each.message, each.machines) for each in changes]


def test_cloud_events_alone_in_a_batch_and_in_headers_become_changes(gateway: httpx.Client, own: Settings) -> None:
    one = gateway.post("/events", json=event(), headers={"Content-Type": "application/cloudevents+json"})
    several = [event("2", type="com.example.restart", data={"machines": ["db-*"], "title": "nightly restart"})]
    several.append(event("3", type="flag.changed", time="2026-11-20T08:31:00Z", data={"text": "new checkout on"}))
    batch = gateway.post("/events", json=several, headers={"Content-Type": "application/cloudevents-batch+json"})
    attributes = {"specversion": "1.0", "id": "4", "source": "ci/cart", "type": "config.updated", "time": AT}
    headers = {f"ce-{name}": text for name, text in attributes.items()}
    binary = gateway.post("/events", json={"message": "pool 20", "host": "db-1", "user": "ann"}, headers=headers)
    assert [(each.status_code, each.json()["taken"]) for each in (one, batch, binary)] == [(202, 1), (202, 2), (202, 1)]
    found = control_topics.changes(own)
    assert shown(found) == [
        ("ci/cart/1", AT_MS, "deployment", "cart 1.4", ["web-1", "web-2"]),
        ("ci/cart/2", AT_MS, "restart", "nightly restart", ["db-*"]),
        ("ci/cart/4", AT_MS, "configuration", "pool 20", ["db-1"]),
        ("ci/cart/3", AT_MS + 60_000, "feature_flag", "new checkout on", []),
    ]
    assert [each.by for each in found] == ["", "", "ann", ""]


def test_attributes_in_headers_are_percent_decoded(gateway: httpx.Client, own: Settings) -> None:
    """The example of CloudEvents' HTTP binding 1.0.2, section 3.1.3.2, and its text in quotation marks."""
    headers = {"ce-specversion": "1.0", "ce-id": '"a%20b"', "ce-source": "ci", "ce-type": "deploy", "ce-time": AT}
    gateway.post("/events", content=b"", headers=headers | {"ce-subject": "Euro%20%E2%82%AC%20%F0%9F%98%80"})
    assert [(each.id, each.message) for each in control_topics.changes(own)] == [("ci/a b", "deploy Euro € 😀")]


def test_annotations_without_a_time_are_changes_of_their_own(gateway: httpx.Client, own: Settings) -> None:
    """A hook that always posts the same text says each time that something was done again, as it does in Grafana."""
    for _ in range(2):
        gateway.post("/api/annotations", json={"text": "deployed", "tags": ["deploy"]})
        time.sleep(0.002)  # the time of receipt is in milliseconds
    found = control_topics.changes(own)
    assert len(found) == 2 and found[0].time < found[1].time


def test_the_kind_is_looked_for_in_what_is_kept_of_a_long_text(gateway: httpx.Client, own: Settings) -> None:
    text = "night " * 200 + "deploy"
    assert gateway.post("/api/annotations", json={"text": text, "time": AT_MS}).status_code == 200
    assert [each.kind for each in control_topics.changes(own)] == ["other"]


def test_the_same_event_again_is_one_change_and_the_later_one_counts(gateway: httpx.Client, own: Settings) -> None:
    later = event(time="2026-11-20T08:30:01Z", data={"message": "cart 1.4, and its proxy"})
    assert gateway.post("/events", json=[later, event()]).json()["taken"] == 1
    gateway.post("/events", json=event())
    assert [each.message for each in control_topics.changes(own)] == ["cart 1.4, and its proxy"]


def test_an_annotation_of_grafana_becomes_a_change_of_the_machines_in_its_tags(
    gateway: httpx.Client, own: Settings
) -> None:
    body = {
        "dashboardUID": "jcIIG-07z", "panelId": 2, "time": AT_MS, "timeEnd": AT_MS + 120_000,
        "tags": ["deploy", "host:web-1"], "text": "checkout 2.0",
    }  # fmt: skip
    answer = gateway.post("/api/annotations", json=body)
    assert (answer.status_code, answer.json()["message"]) == (200, "Annotation added")
    (one,) = control_topics.changes(own)
    assert shown([one])[0][1:] == (AT_MS, "deployment", "checkout 2.0", ["web-1"])
    assert one.end == AT_MS + 120_000


def kubernetes(reason: str, kind: str, name: str, **more: Any) -> dict[str, Any]:
    involved = {"kind": kind, "namespace": "shop", "name": name, "apiVersion": "apps/v1"}
    fixed = {
        "apiVersion": "v1", "kind": "Event", "metadata": {"name": f"{name}.17b2", "uid": f"uid-{reason}-{name}"},
        "involvedObject": involved, "reason": reason, "type": "Normal", "source": {"component": "x"},
        "firstTimestamp": AT, "lastTimestamp": AT, "count": 1, "message": f"{reason} of {name}",
    }  # fmt: skip
    return fixed | more


def test_events_of_kubernetes_that_change_something_are_taken_and_the_others_are_told(
    gateway: httpx.Client, own: Settings
) -> None:
    items = [
        kubernetes("ScalingReplicaSet", "Deployment", "cart"),
        kubernetes("Pulled", "Pod", "cart-7d9"),
        kubernetes("Killing", "Pod", "cart-7d9"),
    ]
    answer = gateway.post("/events", json={"kind": "List", "apiVersion": "v1", "items": items})
    assert answer.json()["taken"] == 2 and answer.json()["left_out"] == 1
    assert answer.json()["reasons"][0].startswith("NO_CHANGE: an event of Kubernetes with the reason 'Pulled'")
    newer = {"regarding": items[0]["involvedObject"] | {"name": "web"}, "note": "Scaled up", "eventTime": AT}
    removed = ("involvedObject", "message", "firstTimestamp", "lastTimestamp")
    renamed = {k: v for k, v in kubernetes("ScalingReplicaSet", "Deployment", "web").items() if k not in removed}
    assert gateway.post("/events", json=renamed | newer).json()["taken"] == 1
    rollout = AT_MS, "deployment"
    pod = ["shop/cart-7d9", "cart-7d9"]
    cart, web = ([f"shop/{name}", f"shop/{name}-*", name, f"{name}-*"] for name in ("cart", "web"))
    assert sorted(shown(control_topics.changes(own))) == [
        ("uid-Killing-cart-7d9", AT_MS, "restart", "Pod shop/cart-7d9: Killing of cart-7d9", pod),
        ("uid-ScalingReplicaSet-cart", *rollout, "Deployment shop/cart: ScalingReplicaSet of cart", cart),
        ("uid-ScalingReplicaSet-web", *rollout, "Deployment shop/web: Scaled up", web),
    ]


def test_all_events_of_a_large_cluster_may_come_in_one_request(gateway: httpx.Client, own: Settings) -> None:
    pulled = [kubernetes("Pulled", "Pod", f"cart-{n}") for n in range(1_500)]
    items = [*pulled, kubernetes("Killing", "Pod", "cart-7d9")]
    answer = gateway.post("/events", json={"kind": "List", "apiVersion": "v1", "items": items})
    assert (answer.status_code, answer.json()["taken"], answer.json()["left_out"]) == (202, 1, 1_500)


def test_what_happens_again_in_a_cluster_is_a_change_of_its_own(gateway: httpx.Client, own: Settings) -> None:
    """Kubernetes counts in the same event; what an incident has named must not move to after its report."""
    once = kubernetes("BackOff", "Pod", "cart-7d9")
    again = once | {"count": 2, "lastTimestamp": "2026-11-20T08:35:00Z"}
    third = once | {"series": {"count": 3, "lastObservedTime": "2026-11-20T08:40:00Z"}}
    for each in (once, again, again, third):
        gateway.post("/events", json=each)
    assert [each.time - AT_MS for each in control_topics.changes(own)] == [0, 300_000, 600_000]


def test_only_events_that_change_nothing_are_no_error(gateway: httpx.Client, own: Settings) -> None:
    answer = gateway.post("/events", json=kubernetes("Pulled", "Pod", "cart-7d9"))
    assert (answer.status_code, answer.json()["taken"]) == (202, 0)


def test_our_own_form_is_that_of_the_topic(gateway: httpx.Client, own: Settings) -> None:
    body = {"event.id": "a", "message": "kernel 6.12", "host.name": ["host-*"], "event.action": "restart"}
    before = int(time.time() * 1000)
    assert gateway.post("/events", json=body).status_code == 202
    (one,) = control_topics.changes(own)
    assert shown([one])[0][2:] == ("restart", "kernel 6.12", ["host-*"])
    assert before <= one.time <= int(time.time() * 1000), "without a time it is when it was received"


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({}, "FORMAT_UNKNOWN"),
        ([1], "FORMAT_UNKNOWN"),
        ({"event.id": "a", "message": " \n"}, "CHANGE_INVALID"),
        (event(id=""), "CHANGE_INVALID"),
        (event(time="soon"), "CHANGE_INVALID"),
        (event(time="2126-01-01T00:00:00Z"), "TIME_AHEAD"),
        (event(data={"message": "x", "end": "2126-01-01T00:00:00Z"}), "TIME_AHEAD"),
        (event(data={"message": "x", "machines": [f"m-{n}" for n in range(101)]}), "CHANGE_INVALID"),
        ({"event.id": "a", "message": "b", "hsot.name": ["c"]}, "CHANGE_INVALID"),
        ([event(f"{n}") for n in range(1_001)], "GATEWAY_TOO_LARGE"),
        (event(source="x" * 5_000, data={"machines": [None, {}]}), ""),
        ({"reason": "Killing", "involvedObject": "web"}, ""),
        ({"text": {"a": 1}, "tags": "deploy", "time": True}, ""),
        (event(data={"message": 7}), ""),
        (event(data={"title": ["a"], "host": 5, "url": [], "user": {}}), ""),
        (event(time=1e308), "CHANGE_INVALID"),
        ({"text": nested(300)}, ""),
        ({"text": "a", "time": nested(300)}, "CHANGE_INVALID"),
        ({"event.id": "a", "message": nested(300)}, "CHANGE_INVALID"),
        ({"event.id": nested(900), "message": "a"}, "CHANGE_INVALID"),
    ],
)  # fmt: skip
def test_what_is_no_change_is_refused_with_its_reason_and_the_gateway_goes_on(
    gateway: httpx.Client, own: Settings, body: Any, code: str
) -> None:
    answer = gateway.post("/events", json=body)
    if code:
        assert answer.status_code == 400 and answer.json()["message"].startswith(f"{code}: ")
    assert answer.status_code in (202, 400)
    assert gateway.post("/events", json=event()).status_code == 202


def test_a_wrong_one_among_right_ones_is_left_out_alone(gateway: httpx.Client, own: Settings) -> None:
    answer = gateway.post("/events", json=[event("1"), event("2", time="soon"), event("3")])
    assert answer.json() == {
        "taken": 2, "left_out": 1, "reasons": [answer.json()["reasons"][0]],
    }  # fmt: skip
    assert "'soon' is no time" in answer.json()["reasons"][0]
    assert [each.id for each in control_topics.changes(own)] == ["ci/cart/1", "ci/cart/3"]


def test_text_that_is_no_json_is_refused(gateway: httpx.Client) -> None:
    answer = gateway.post("/events", content=b"deploy cart")
    assert (answer.status_code, answer.json()["message"][:14]) == (400, "JSON_MALFORMED")


@pytest.mark.parametrize(
    ("kind", "name", "message", "pod"),
    [
        ("ReplicaSet", "cart-7d4b9c6f5", "Deleted pod: cart-7d4b9c6f5-x2x7p", "cart-7d4b9c6f5-x2x7p"),
        ("StatefulSet", "db", "delete Pod db-0 in StatefulSet db successful", "db-0"),
        ("DaemonSet", "agent", "Deleted pod: agent-zk5t2", "agent-zk5t2"),
    ],
)
def test_of_a_pod_that_its_controller_has_ended_it_is_said(kind: str, name: str, message: str, pod: str) -> None:
    """The messages are those of Kubernetes' controllers: ``pkg/controller``, and ``stateful_pod_control.go``."""
    (change,) = changes_of(kubernetes("SuccessfulDelete", kind, name, message=message), AT_MS)
    assert isinstance(change, Change)
    assert (change.kind, change.machines) == ("ended", [f"shop/{pod}", pod])


@pytest.mark.parametrize(
    ("reason", "kind", "name", "message", "action"),
    [
        ("Killing", "Pod", "db-0", "Stopping container app", "ending"),
        ("Killing", "Pod", "db-0", "Container app failed liveness probe, will be restarted", "restart"),
        ("Killing", "Pod", "db-0", "Container app definition changed, will be restarted", "restart"),
        ("BackOff", "Pod", "db-0", "Back-off restarting failed container app", "restart"),
        ("Evicted", "Pod", "db-0", "The node was low on resource: memory.", "ending"),
        ("TaintManagerEviction", "Pod", "db-0", "Marking for deletion Pod shop/db-0", "ending"),
        ("TaintManagerEviction", "Pod", "db-0", "Cancelling deletion of Pod shop/db-0", None),
        ("Completed", "Job", "report-29384700", "Job completed", "ended"),
        ("Completed", "Pod", "db-0", "Completed", None),
        ("ScaleDown", "Pod", "db-0", "deleting pod for node scale down", "ending"),
        ("OOMKilling", "Node", "node-3", "Memory cgroup out of memory: Killed process 7 (app)", None),
        ("Failed", "Pod", "db-0", "Error: ErrImagePull", None),
        ("NodeNotReady", "Node", "node-3", "Node node-3 status is now: NodeNotReady", None),
    ],
)
def test_what_ends_a_pod_on_purpose_is_told_from_what_kills_it(
    reason: str, kind: str, name: str, message: str, action: str | None
) -> None:
    """The messages are those of kubelet, of the controllers of taints and of jobs, and of the cluster autoscaler."""
    (change,) = changes_of(kubernetes(reason, kind, name, message=message), AT_MS)
    assert (change.kind if isinstance(change, Change) else None) == action
    if isinstance(change, Change):
        assert change.machines == [f"shop/{name}", name]


@pytest.mark.parametrize(
    ("reason", "message", "action"),
    [
        ("NodeNotSchedulable", "Node node-3 status is now: NodeNotSchedulable", "cordon"),
        ("ScaleDown", "marked the node as toBeDeleted/unschedulable", "cordon"),
        ("NodeSchedulable", "Node node-3 status is now: NodeSchedulable", "uncordon"),
    ],
)
def test_that_a_node_is_cordoned_is_said_of_its_machine(reason: str, message: str, action: str) -> None:
    told = kubernetes(reason, "Node", "node-3", message=message)
    told["involvedObject"].pop("namespace", None)
    (change,) = changes_of(told, AT_MS)
    assert isinstance(change, Change)
    assert (change.kind, change.machines) == (action, ["node-3"])


@pytest.mark.parametrize("kind", ["ended", "ending", "cordon", "uncordon"])
@pytest.mark.parametrize("machines", [[], ["*"], ["web-?"]])
def test_agents_say_of_single_machines_only_that_they_were_ended(machines: list[str], kind: str) -> None:
    told = {"event.id": "x", "message": "scaled down", "event.action": kind, "host.name": machines}
    (refused,) = changes_of(told, AT_MS)
    assert isinstance(refused, NewnormalError)
    assert refused.code == "CHANGE_INVALID"
