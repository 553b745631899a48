"""Pods on a node that fails are one incident that names the node, and nobody has said what runs where."""

from __future__ import annotations

import json
import math
import random
import time
from typing import Any

import pytest
from confluent_kafka import Producer
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from pipelines.contracts import topics
from tests.integration.conftest import Pipeline

pytestmark = [pytest.mark.servers, pytest.mark.spark, pytest.mark.timeout(900)]

STEP, MINUTE = 10_000, 60_000
MINUTES, FAILS, LASTS = 60, 40, 6
NODES = {"cart": "node-1", "store": "node-1", "web": "node-2", "mail": "node-2"}
"""The deployment of each pod, and its node."""
PODS = {name: f"{name}-7d4b9c6f5-x2x{n}p" for n, name in enumerate(NODES, 2)}


def messages(start: int) -> list[bytes]:
    """What collectors on the nodes and in the pods send: `node-1` fails, and 20 seconds later its pods do."""
    noise, sent = random.Random(4), []
    for at in range(start, start + MINUTES * MINUTE, STEP):
        after = (at - start - FAILS * MINUTE) // STEP
        for node in ("node-1", "node-2"):
            fails = node == "node-1" and 0 <= after < LASTS * 6
            values = {
                "disk.wait": 400.0 if fails else 5.0,
                "load": 40.0 if fails else 2.0,
                "steal": 60.0 if fails else 1.0,
            }
            sent.append(request({"host.name": node, "k8s.node.name": node}, values, at, noise))
        for name, node in NODES.items():
            fails = node == "node-1" and 2 <= after < LASTS * 6
            resource = {
                "k8s.namespace.name": "shop", "k8s.pod.name": PODS[name], "k8s.node.name": node,
                "k8s.deployment.name": name,
            }  # fmt: skip
            values = {f"{name}.latency": 900.0 if fails else 30.0, f"{name}.queue": 80.0 if fails else 4.0}
            sent.append(request(resource, values, at, noise))
    return sent


def trace(number: int, service: str, span: int, parent: int, at: int) -> bytes:
    made = ExportTraceServiceRequest()
    held = made.resource_spans.add()
    for key, value in (("k8s.namespace.name", "shop"), ("k8s.deployment.name", service)):
        held.resource.attributes.add(key=key).value.string_value = value
    one = held.scope_spans.add().spans.add(name="x", end_time_unix_nano=at * 1_000_000)
    one.trace_id, one.span_id = number.to_bytes(16), span.to_bytes(8)
    one.parent_span_id = parent.to_bytes(8) if parent else b""
    return made.SerializeToString()


def request(resource: dict[str, str], values: dict[str, float], at: int, noise: random.Random) -> bytes:
    made = ExportMetricsServiceRequest()
    held = made.resource_metrics.add()
    for key, value in resource.items():
        held.resource.attributes.add(key=key).value.string_value = value
    metrics = held.scope_metrics.add().metrics
    for name, value in values.items():
        wanders = value * math.exp(noise.gauss(0.0, 0.05))
        metrics.add(name=name).gauge.data_points.add(time_unix_nano=at * 1_000_000, as_double=wanders)
    return made.SerializeToString()


def test_pods_on_a_node_that_fails_are_one_incident_that_names_the_node(pipeline: Pipeline) -> None:
    producer = Producer({"bootstrap.servers": pipeline.settings.kafka.bootstrap or ""})
    for n, message in enumerate(messages(int(time.time() * 1000) - (MINUTES + 2) * MINUTE)):
        producer.produce(pipeline.settings.topic(topics.RAW_AGENTS), message, partition=n % 4)
        producer.poll(0)
    assert not producer.flush(60)
    for n in range(6):  # what comes later tells that the first ones were waited for
        at = int(time.time() * 1000) - 6 * MINUTE + n * MINUTE
        producer.produce(pipeline.settings.topic(topics.TRACES_AGENTS), trace(n + 1, "web", 1, 0, at), partition=0)
        producer.produce(pipeline.settings.topic(topics.TRACES_AGENTS), trace(n + 1, "cart", 2, 1, at), partition=1)
    assert not producer.flush(60)
    pipeline.start("normalizer", "extractor", "detector", "calls", "places", "incidents")

    def places() -> dict[str, tuple[str | None, str | None]]:
        found = [json.loads(message.value()) for message in pipeline.read(topics.PLACES)]
        on = {each["host.name"]: (each.get("parent"), each.get("workload")) for each in found if each.get("parent")}
        return {name.rpartition("/")[2]: place for name, place in on.items()}

    def called() -> dict[str, list[str]]:
        found = [json.loads(message.value()) for message in pipeline.read(topics.PLACES)]
        return {each["host.name"]: each["depends_on"] for each in found if each["depends_on"]}

    def standing() -> list[dict[str, Any]]:
        last = {each["event.id"]: each for each in (json.loads(m.value()) for m in pipeline.read(topics.INCIDENTS))}
        return [each for each in last.values() if each["incident.state"] != "merged"]

    expected = {PODS[name]: (node, f"shop/{name}") for name, node in NODES.items()}
    pipeline.wait("the places of the pods", lambda: places() == expected)
    pipeline.wait("one incident", lambda: [each["machine_count"] for each in standing()] == [3])
    pipeline.wait("the call", lambda: called() == {"shop/web": ["shop/cart"]})
    (incident,) = standing()
    named = {machine["entity"].rpartition("/")[2] for machine in incident["machines"]}
    assert named == {"node-1", PODS["cart"], PODS["store"]}
    assert incident["candidates"][0]["entity"] == "node-1", incident["candidates"]
    said = pipeline.command("topology", "list", "--json")
    assert {json.loads(line)["source"] for line in said.splitlines()} == {"telemetry"}
    pipeline.stop()
    assert not [m for m in pipeline.read(topics.DEADLETTER) if b'"places"' in m.value()]
