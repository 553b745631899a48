"""What telemetry says of places, in each format: the decoder against the protocol's own classes and real samples."""

from __future__ import annotations

import json
import re
import time
from typing import Any

import pytest
from google.protobuf import json_format
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest

from engine.spec.decoder import Messages
from pipelines.formats.labels import LABELS
from pipelines.formats.placements.decoder import PlacementsDecoder, TracedPlacementsDecoder
from pipelines.formats.placements.resources import pod_of
from tests.pipelines.formats import remote_writes

T = 1_767_571_200_000
POD = "cart-7d4b9c6f5-x2x7p"
NAME = pod_of(LABELS, "shop", POD)
"""The pod as a machine, which its own metrics name by the same rule."""
INFO = {
    "namespace": "shop", "pod": POD, "uid": "8c4b", "node": "node-1", "host_ip": "10.0.0.5", "pod_ip": "10.1.0.7",
    "created_by_kind": "ReplicaSet", "created_by_name": "cart-7d4b9c6f5",
}  # fmt: skip


def facts(*values: bytes, arrived: int = T) -> list[tuple[Any, ...]]:
    decoded = PlacementsDecoder().decode(Messages.of(values, arrived))
    assert not decoded.refused, "what is broken is reported by the normalizer, once"
    return [(row["entity"], row["parent"], row["workload"], row["time"]) for row in decoded.records.to_pylist()]


def request(*resources: dict[str, str], time: int = T) -> ExportMetricsServiceRequest:
    made = ExportMetricsServiceRequest()
    for attributes in resources:
        resource = made.resource_metrics.add()
        for key, value in attributes.items():
            resource.resource.attributes.add(key=key).value.string_value = value
        metric = resource.scope_metrics.add().metrics.add(name="process.cpu.utilization")
        metric.gauge.data_points.add(time_unix_nano=time * 1_000_000, as_double=0.5)
    return made


RESOURCE = {
    "k8s.namespace.name": "shop", "k8s.pod.name": POD, "k8s.node.name": "node-1", "k8s.deployment.name": "cart",
    "service.name": "cart",
}  # fmt: skip


@pytest.mark.parametrize("as_json", [False, True])
def test_a_pod_is_on_its_node_and_in_its_deployment_by_the_resource_alone(as_json: bool) -> None:
    made = request(RESOURCE, time=T + 17_345)
    value = json_format.MessageToJson(made, indent=None).encode() if as_json else made.SerializeToString()
    assert facts(value) == [(NAME, "node-1", "shop/cart", T + 10_000)]


STAMP = "2026-01-05T00:00:17.345Z"
KUBELET = (
    "kubernetes_pod_container,container_name=cart,host=ip-10-0-0-5,namespace=shop,node_name=node-1,pod_name={pod} "
    'cpu_usage_nanocores=2838231i,memory_usage_bytes=0i,state="a b" {at}'
)
INVENTORY = (
    "kubernetes_pod_container,container_name=cart,namespace=shop,node_name=node-1,pod_name={pod},state=running "
    "resource_requests_millicpu_units=100i,restarts_total=0i"
)
"""Lines of Telegraf's inputs `kubernetes` and `kube_inventory`, with the tags of the examples in their READMEs."""


def beat(**more: Any) -> bytes:
    """A document of Metricbeat's metricset `pod`, with the fields of the example in its reference."""
    pod = {"name": POD, "uid": "b89a812e-18cd-11e9-b333-080027190d51", "network": {"rx": {"bytes": 18999261}}}
    of_pod = {"namespace": "shop", "node": {"name": "node-1"}, "pod": pod, **more}
    about = {"agent": {"type": "metricbeat", "version": "8.19.0"}, "host": {"name": "metricbeat-x2x7p"}}
    metricset = {"metricset": {"name": "pod", "period": 10_000}, "event": {"module": "kubernetes"}}
    return json.dumps({"@timestamp": STAMP, **about, **metricset, "kubernetes": of_pod}).encode()


def test_metricbeat_says_on_which_node_a_pod_is_and_whose() -> None:
    assert facts(beat()) == [(NAME, "node-1", None, T + 10_000)]
    for kind in ("deployment", "statefulset", "daemonset", "cronjob"):
        assert facts(beat(**{kind: {"name": "cart"}})) == [(NAME, "node-1", "shop/cart", T + 10_000)]
    assert facts(beat(replicaset={"name": "cart-7d4b9c6f5"})) == [(NAME, "node-1", "shop/cart", T + 10_000)]
    flat = {"kubernetes.namespace": "shop", "kubernetes.pod.name": POD, "kubernetes.node.name": "node-1"}
    assert facts(json.dumps({"@timestamp": STAMP, "metricset": {}, **flat}).encode()) == facts(beat())


@pytest.mark.parametrize(
    "other", [{"pod": {}}, {"pod": {"name": ""}}, {"pod": {"name": 7}}, {"pod": "db-0"}, {"pod": {"count": 5}}]
)
def test_a_document_that_names_no_pod_says_nothing(other: dict[str, Any]) -> None:
    assert facts(beat(**other)) == []


@pytest.mark.parametrize("arrived", [T, T + 60_000])
def test_telegraf_says_on_which_node_a_pod_is(arrived: int) -> None:
    line = KUBELET.format(pod=POD, at=T * 1_000_000)
    tags = {"namespace": "shop", "pod_name": POD, "node_name": "node-1", "host": "ip-10-0-0-5"}
    one = {"fields": {"rx_bytes": 5}, "name": "kubernetes_pod_network", "tags": tags, "timestamp": T // 1000}
    other = {**one, "name": "cpu"}
    for value in (line.encode(), f"cpu,host=a usage=1 5\n{line}\n".encode(), json.dumps(one).encode(),
                  json.dumps({"metrics": [other, one]}).encode()):  # fmt: skip
        assert facts(value, arrived=arrived) == [(NAME, "node-1", None, T)], value
    without = INVENTORY.format(pod=POD).encode()
    assert facts(without, arrived=arrived) == [(NAME, "node-1", None, arrived)]


def test_of_other_measurements_of_telegraf_no_tag_names_a_pod() -> None:
    """An application's own tag may name any pod, and a container of Docker is a part of its host's metrics."""
    for name in (
        "docker_container_cpu",
        "app",
        "kubernetes_node",
        "kubernetes_deployment",
        "xkubernetes_pod_container",
    ):
        line = f"{name},host=a,pod_name={POD},node_name=n,container_name=cart usage=1 {T * 1_000_000}"
        assert facts(line.encode()) == []


def test_a_container_of_cadvisor_says_where_its_pod_is_if_the_scraper_names_the_node() -> None:
    """With the labels that the kubelet serves; `node` is added by those who scrape it."""
    said = {"namespace": "shop", "pod": POD, "container": "cart", "id": "/kubepods/x", "image": "cart:1", "name": "x"}
    scraped = {**said, "instance": "10.0.0.5:10250", "job": "kubelet", "node": "node-1"}

    def line(labels: dict[str, str], value: str = "5.1e7") -> bytes:
        inside = ",".join(f'{key}="{each}"' for key, each in labels.items())
        return f"container_memory_working_set_bytes{{{inside}}} {value} {T}".encode()

    assert facts(line(scraped)) == [(NAME, "node-1", None, T)]
    assert facts(line(said)) == facts(line(scraped, "NaN")) == []
    assert facts(line({"id": "/system.slice", "node": "node-1"})) == []
    series = {"__name__": "container_memory_working_set_bytes", **scraped}
    assert facts(remote_writes.request(remote_writes.series(series, (0.0, T)))) == [(NAME, "node-1", None, T)]


def test_of_prometheus_each_way_of_sending_says_the_same() -> None:
    labels = ",".join(f'{key}="{value}"' for key, value in INFO.items())
    series = {"__name__": "kube_pod_info", **INFO, "instance": "10.1.0.9:8080", "job": "kube-state-metrics"}
    other = {"__name__": "up", "instance": "a:9100"}
    first = remote_writes.request(remote_writes.series(other, (1.0, T)), remote_writes.series(series, (1.0, T)))
    second = remote_writes.Second()
    second.add(other, (1.0, T))
    second.add(series, (1.0, T))
    over_otlp = request({"service.name": "kube-state-metrics"})
    metric = over_otlp.resource_metrics[0].scope_metrics[0].metrics.add(name="kube_pod_info")
    point = metric.gauge.data_points.add(time_unix_nano=T * 1_000_000, as_double=1.0)
    for key, value in INFO.items():
        point.attributes.add(key=key).value.string_value = value
    values = (
        f"# TYPE kube_pod_info gauge\nkube_pod_info{{{labels}}} 1\n".encode(),
        f'up 1\nkube_pod_info{{{labels},note="a }} \\" b"}} 1 {T}'.encode(),
        first,
        second.bytes(),
        over_otlp.SerializeToString(),
        json_format.MessageToJson(over_otlp, indent=None).encode(),
    )
    for value in values:
        assert facts(value) == [(NAME, "node-1", "shop/cart", T)], value


def test_a_series_that_is_gone_says_nothing() -> None:
    series = {"__name__": "kube_pod_info", **INFO}
    assert facts(remote_writes.request(remote_writes.series(series, (remote_writes.STALE, T)))) == []
    assert facts(b'kube_pod_info{namespace="a",pod="b",node="n"} 0') == []


@pytest.mark.parametrize(
    ("kind", "name", "workload"),
    [
        ("ReplicaSet", "cart-7d4b9c6f5", "shop/cart"), ("StatefulSet", "db", "shop/db"),
        ("DaemonSet", "proxy", "shop/proxy"), ("Job", "report-29384700", "shop/report"), ("Job", "once", "shop/once"),
        ("Node", "node-1", None), ("<none>", "<none>", None),
        ("", "", None),
    ],
)  # fmt: skip
def test_the_owner_of_a_pod_says_its_workload(kind: str, name: str, workload: str | None) -> None:
    line = f'kube_pod_owner{{namespace="shop",pod="p",owner_kind="{kind}",owner_name="{name}"}} 1'
    expected = [(pod_of(LABELS, "shop", "p"), None, workload, T)] if workload else []
    assert facts(line.encode()) == expected


def test_a_pod_that_has_no_node_yet_is_on_none() -> None:
    """As kube-state-metrics writes it, by the expectations of its own tests: values that it does not have are empty."""
    line = (
        b'kube_pod_info{namespace="ns1",pod="pod1",uid="u1",host_ip="",pod_ip="",node="",created_by_kind="%s",'
        b'created_by_name="%s",priority_class="",host_network="false"} 1'
    )
    assert facts(line % (b"", b"")) == []
    assert facts(line % (b"DaemonSet", b"proxy")) == [(pod_of(LABELS, "ns1", "pod1"), None, "ns1/proxy", T)]


def test_a_node_whose_exporter_is_named_by_its_address_runs_on_that_address() -> None:
    line = b'node_uname_info{instance="10.0.0.5:9100",nodename="node-1",machine="x86_64",sysname="Linux"} 1'
    assert facts(line) == [("node-1", "10.0.0.5", None, T)]
    assert facts(b'node_uname_info{instance="node-1:9100",nodename="node-1"} 1') == []
    assert facts(request({"host.name": "ip-10-0-0-5", "k8s.node.name": "node-1"}).SerializeToString()) == [
        ("node-1", "ip-10-0-0-5", None, T)
    ]


def test_a_pod_is_on_its_node_and_not_on_what_its_processes_call_their_host() -> None:
    for host in (POD, "my-host", "node-1"):
        found = facts(request({**RESOURCE, "host.name": host}).SerializeToString())
        assert {(entity, parent) for entity, parent, _, _ in found} == {(NAME, "node-1")}


def test_what_is_said_again_within_ten_seconds_is_said_once() -> None:
    values = [request(RESOURCE, time=T + n * 1_000).SerializeToString() for n in range(25)]
    assert [time for *_, time in facts(*values)] == [T, T + 10_000, T + 20_000]


NAMES = (
    "k8s.namespace.name",
    "k8s.pod.name",
    "k8s.node.name",
    "host.name",
    "service.name",
    "k8s.deployment.name",
    "os",
)
ATTRIBUTES = st.dictionaries(st.sampled_from(NAMES), st.sampled_from(["", "a", "b", "shop", POD]), max_size=6)


@given(st.lists(ATTRIBUTES, max_size=4), st.integers(0, 60_000))
def test_protobuf_and_json_say_what_the_protocols_own_classes_read(resources: list[dict[str, str]], after: int) -> None:
    made = request(*resources, time=T + after)
    own = set()
    for resource in ExportMetricsServiceRequest.FromString(made.SerializeToString()).resource_metrics:
        named = {each.key: each.value.string_value for each in resource.resource.attributes if each.value.string_value}
        pod, node = named.get("k8s.pod.name"), named.get("k8s.node.name")
        if pod and node:
            own.add((pod_of(LABELS, named.get("k8s.namespace.name", ""), pod), node))
    time = T + after - after % 10_000
    for value in (made.SerializeToString(), json_format.MessageToJson(made, indent=None).encode()):
        found = facts(value)
        assert own - {(name, name) for name, _ in own} <= {(entity, parent) for entity, parent, _, _ in found}
        assert {at for *_, at in found} <= {time}
        assert all(entity not in (parent, "") and "" not in (parent, workload) for entity, parent, workload, _ in found)


@given(st.binary(max_size=60), st.sampled_from([b"kube_pod_info", b"k8s.pod.name", b'{"resourceMetrics"', b"\n\x05"]))
def test_no_message_stops_it(noise: bytes, begin: bytes) -> None:
    facts(begin + noise, noise + begin, begin, b"")


def _messages() -> dict[str, bytes]:
    """A message of each form that names places."""
    tags = {"namespace": "shop", "pod_name": POD, "node_name": "node-1", "host": "ip-10-0-0-5"}
    telegraf = {"fields": {"rx": 5}, "name": "kubernetes_pod_network", "tags": tags, "timestamp": T // 1000}
    otlp = request(RESOURCE)
    return {
        "otlp": otlp.SerializeToString(),
        "otlp-json": json_format.MessageToJson(otlp, indent=None).encode(),
        "metricbeat": beat(),
        "telegraf": json.dumps({"metrics": [telegraf]}).encode(),
        "influx": KUBELET.format(pod=POD, at=T * 1_000_000).encode(),
        "prometheus": b'kube_pod_info{namespace="shop",pod="db-0",node="node-1"} 1 1767571200000\n',
        "remote-write": remote_writes.request(remote_writes.series({"__name__": "kube_pod_info", **INFO}, (1.0, T))),
    }


@pytest.mark.parametrize("form", list(_messages()))
def test_a_message_that_is_cut_off_says_nothing_and_the_next_one_does(form: str) -> None:
    whole, sound = _messages()[form], request(RESOURCE).SerializeToString()
    assert len(facts(whole)) == 1
    for cut in range(1, len(whole)):
        assert facts(whole[:cut], sound)[-1] == (NAME, "node-1", "shop/cart", T)


ODD = [b"[" * 1_000 + b"]" * 1_000, b"[1]", b"{}", b"7", b"1e400", b"9" * 400, b"true", b"null", b'""', b'"\\ud800"',
       b'"\\u0000"']  # fmt: skip


@pytest.mark.parametrize("form", ["otlp-json", "metricbeat", "telegraf"])
@pytest.mark.parametrize("odd", ODD, ids=lambda odd: repr(odd[:12]))
def test_no_value_of_another_type_keeps_the_next_message_from_being_read(form: str, odd: bytes) -> None:
    good, sound = _messages()[form], request(RESOURCE).SerializeToString()
    for at in re.compile(rb'(?<=":)\s*("[^"]*"|-?[0-9.]+)').finditer(good):
        assert (NAME, "node-1", "shop/cart", T) in facts(good[: at.start()] + odd + good[at.end() :], sound)


@pytest.mark.parametrize("time", ["9" * 18 + "000", "-" + "9" * 30, "9" * 40])
def test_a_time_that_no_clock_has_is_left_out_and_the_next_message_is_read(time: str) -> None:
    """The job reads what nobody has checked: one message must not end it, for it would be read again for ever."""
    whole = request(RESOURCE).SerializeToString()
    at = time.removesuffix("000")
    series = 'kube_pod_info{namespace="shop",pod="db-0",node="node-1"} 1 ' + at
    point = {"dataPoints": [{"timeUnixNano": f"{at}000000", "asInt": "1"}]}
    attributes = [{"key": f"k8s.{key}.name", "value": {"stringValue": key}} for key in ("pod", "node")]
    scopes = [{"metrics": [{"name": "x", "gauge": point}]}]
    tree = {"resourceMetrics": [{"resource": {"attributes": attributes}, "scopeMetrics": scopes}]}
    for broken in (series.encode(), json.dumps(tree).encode()):
        found = facts(broken, whole)
        assert found[-1] == (NAME, "node-1", "shop/cart", T)
    span = {"resource": {"attributes": attributes}, "scopeSpans": [{"spans": [{"endTimeUnixNano": f"{at}000000"}]}]}
    TracedPlacementsDecoder().decode(Messages.of([json.dumps({"resourceSpans": [span]}).encode()]))


def test_a_line_of_a_measurement_is_read_in_one_pass_whatever_follows_its_tags() -> None:
    """Whoever may send samples may send lines of blanks, each of which might be the end of one."""
    line = f"kubernetes_pod_network,namespace=shop,node_name=node-1,pod_name={POD} rx=1{' ' * 100_000}x\n"
    began = time.process_time()
    assert [fact[:2] for fact in facts(line.encode())] == [(NAME, "node-1")]
    assert time.process_time() - began < 1
