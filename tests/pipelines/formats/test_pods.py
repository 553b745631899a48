"""What is about a pod is of the machine `namespace/pod`, whoever tells it; what is about its node stays with the node.

Messages are as the agents write them: cadvisor by the kubelet, kube-state-metrics 2 with and without `honor_labels`,
OpenTelemetry's kubeletstats receiver and k8sattributes processor, Metricbeat 8's and Filebeat 8's Kubernetes fields,
Fluent Bit's and Vector's filters, Telegraf's inputs kubernetes and kube_inventory.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from pipelines.contracts.settings.input import InputSettings
from pipelines.formats.catalogue import BY_NAME, guess
from pipelines.formats.rules import Rules
from tests.pipelines.formats.decoding import decoded, rows

POD = "cart-7d4b9c6f5-x2x7p"
CART = f"shop/{POD}"
NOON, ARRIVED = 1795860900000, 1795864500000


def read(value: bytes, form: str = "", topic: str = "metrics.agents", **settings: Any) -> list[dict[str, Any]]:
    rules = Rules.of(InputSettings.model_validate(settings), topic)
    found = decoded((BY_NAME[form] if form else guess(value, rules=rules)).build(rules), value, arrived=ARRIVED)
    assert found.refused == []
    return rows(found)


def prometheus(line: str, **settings: Any) -> tuple[str, str]:
    (row,) = read(f"{line} 1\n".encode(), "prometheus", **settings)
    return row["entity"], row["metric"]


TARGET = 'endpoint="http",job="ksm",service="ksm"'
KSM = f'instance="10.2.3.4:8443",{TARGET}'
OF_POD = f'namespace="shop",pod="{POD}"'
SERIES = {
    "cadvisor, with the container and its cgroup": (
        'container_memory_working_set_bytes{container="app",endpoint="https",id="/kubepods/burstable/pod1/2",'
        f'image="shop/cart:1.4",instance="10.0.0.5:10250",name="0b6c",node="n1",{OF_POD}}}',
        (CART, "container_memory_working_set_bytes{container=app,endpoint=https}"),
    ),
    "cadvisor, network of the pod": (
        f'container_network_receive_bytes_total{{id="/kubepods/x",interface="eth0",node="n1",{OF_POD}}}',
        (CART, "container_network_receive_bytes_total{interface=eth0}"),
    ),
    "kube-state-metrics about a pod": (
        f'kube_pod_container_status_restarts_total{{container="app",uid="6f5e",{KSM},{OF_POD}}}',
        (CART, "kube_pod_container_status_restarts_total{container=app,endpoint=http,job=ksm,service=ksm}"),
    ),
    "kube-state-metrics without honor_labels": (
        f'kube_pod_status_ready{{condition="true",exported_namespace="shop",exported_pod="{POD}",namespace="mon",'
        f'pod="ksm-5f7c9d8b6c-b4n7s",{KSM}}}',
        (CART, "kube_pod_status_ready{condition=true,endpoint=http,job=ksm,service=ksm}"),
    ),
    "kube-state-metrics about a deployment": (
        f'kube_deployment_status_replicas_available{{deployment="cart",namespace="shop",pod="ksm-0",{KSM}}}',
        ("shop/cart", "kube_deployment_status_replicas_available{job=ksm,service=ksm}"),
    ),
    "kube-state-metrics about a node": (
        f'kube_node_status_condition{{condition="Ready",node="n1",namespace="mon",pod="ksm-0",{KSM}}}',
        ("n1", None),
    ),
    "an application that is scraped": (
        f'http_requests_total{{code="200",container="app",instance="10.2.3.9:8080",{OF_POD}}}',
        (CART, "http_requests_total{code=200,container=app}"),
    ),
    "an ingress, whose host is what it serves": (
        'nginx_requests{host="shop.example.com",instance="10.2.3.9:8080",namespace="web",pod="ingress-0"}',
        ("web/ingress-0", "nginx_requests{host=shop.example.com}"),
    ),
    "a service mesh about another pod": (
        f'response_total{{dst_pod="pay-0",dst_namespace="shop",{OF_POD}}}',
        (CART, "response_total{dst_namespace=shop,dst_pod=pay-0}"),
    ),
    "the node exporter, which runs in a pod": (
        'node_load1{instance="n1:9100",pod="node-exporter-zk5t2",namespace="mon",container="node-exporter"}',
        ("n1", "node_load1{namespace=mon,port=9100}"),
    ),
    "a recorded rule about pods": (
        f'node_namespace_pod_container:container_cpu_usage_seconds_total:sum_irate{{container="app",node="n1",{OF_POD}}}',
        (CART, "node_namespace_pod_container:container_cpu_usage_seconds_total:sum_irate{container=app}"),
    ),
    "a pod without a namespace": (f'up{{pod="{POD}",instance="10.2.3.9:8080"}}', (POD, "up")),
    "a rack that is called pod": ('up{pod="7",instance="a:9100"}', ("a", "up{pod=7,port=9100}")),
}


@pytest.mark.parametrize("case", SERIES)
def test_a_series_of_prometheus_is_of_what_it_is_about(case: str) -> None:
    line, (machine, metric) = SERIES[case]
    found = prometheus(line)
    assert found == (machine, metric or found[1])


def test_an_exporter_that_restarts_at_another_address_makes_no_new_series() -> None:
    for line, _ in SERIES.values():
        if "ksm" in line:
            moved = line.replace("10.2.3.4:8443", "10.2.9.9:9443").replace("ksm-0", "ksm-1")
            assert prometheus(moved) == prometheus(line) or prometheus(line)[0] == "n1"
    restarted = (
        SERIES["cadvisor, with the container and its cgroup"][0].replace("0b6c", "77aa").replace("pod1/2", "pod1/3")
    )
    assert prometheus(restarted)[1] == "container_memory_working_set_bytes{container=app,endpoint=https}"


def test_the_next_release_of_a_pod_has_metrics_of_the_same_names() -> None:
    """What its workload was is known by metric, so no label that changes with a release may be in its name."""
    tags = {"k8s.replicaset.name": "cart-7d4b9c6f5", "k8s.deployment.name": "cart", "service.name": "cart"}
    (first,) = read(otlp_metrics({**OTEL, **tags}, "jvm.memory.used"))
    after = {**OTEL, **tags, "k8s.replicaset.name": "cart-5f7c9d8b6c", "k8s.pod.name": "cart-5f7c9d8b6c-b4n7s"}
    (second,) = read(otlp_metrics(after, "jvm.memory.used"))
    assert first["entity"] != second["entity"]
    assert first["metric"] == second["metric"] == "jvm.memory.used{service.name=cart}"


def test_with_the_setting_off_the_node_or_the_address_names_the_machine() -> None:
    line, _ = SERIES["an application that is scraped"]
    assert prometheus(line, pods=False) == (
        "10.2.3.9", f"http_requests_total{{code=200,container=app,namespace=shop,pod={POD},port=8080}}"
    )  # fmt: skip


OTEL = {"k8s.namespace.name": "shop", "k8s.pod.name": POD, "k8s.node.name": "n1", "k8s.pod.uid": "6f5e"}


def otlp_metrics(resource: dict[str, str], name: str) -> bytes:
    attributes = [{"key": key, "value": {"stringValue": value}} for key, value in resource.items()]
    point = {"timeUnixNano": f"{NOON}000000", "asDouble": 1.0}
    metric = {"name": name, "gauge": {"dataPoints": [point]}}
    scopes = [{"metrics": [metric]}]
    return json.dumps({"resourceMetrics": [{"resource": {"attributes": attributes}, "scopeMetrics": scopes}]}).encode()


def otlp_log(resource: dict[str, str]) -> bytes:
    attributes = [{"key": key, "value": {"stringValue": value}} for key, value in resource.items()]
    record = {"timeUnixNano": f"{NOON}000000", "severityNumber": 9, "body": {"stringValue": "no"}}
    scopes = [{"logRecords": [record]}]
    return json.dumps({"resourceLogs": [{"resource": {"attributes": attributes}, "scopeLogs": scopes}]}).encode()


METRICS: dict[str, tuple[bytes, str]] = {
    "OTLP, kubeletstats": (otlp_metrics({**OTEL, "k8s.container.name": "app"}, "container.memory.usage"), CART),
    "OTLP, SDK behind k8sattributes": (otlp_metrics({**OTEL, "host.name": POD}, "jvm.memory.used"), CART),
    "OTLP, the node of kubeletstats": (otlp_metrics({"k8s.node.name": "n1"}, "k8s.node.memory.usage"), "n1"),
    "OTLP, hostmetrics, collector in a pod": (otlp_metrics({**OTEL, "host.name": "n1"}, "system.memory.usage"), "n1"),
    "Metricbeat, module kubernetes, container": (
        json.dumps(
            {
                **{"@timestamp": "2026-11-28T10:15:00Z", "host": {"name": "n1"}, "agent": {"type": "metricbeat"}},
                **{"metricset": {"name": "container", "period": 10000}, "event": {"module": "kubernetes"}},
                "kubernetes": {
                    **{"namespace": "shop", "pod": {"name": POD, "uid": "6f5e"}, "node": {"name": "n1"}},
                    "container": {"name": "app", "memory": {"usage": {"bytes": 5}}},
                },
            }
        ).encode(),
        CART,
    ),
    "Metricbeat, module kubernetes, node": (
        json.dumps(
            {
                **{"@timestamp": "2026-11-28T10:15:00Z", "host": {"name": "n1"}, "agent": {"type": "metricbeat"}},
                **{"metricset": {"name": "node", "period": 10000}, "event": {"module": "kubernetes"}},
                "kubernetes": {"node": {"name": "n1", "memory": {"usage": {"bytes": 5}}}},
            }
        ).encode(),
        "n1",
    ),
    "Telegraf, kubernetes": (
        json.dumps(
            {
                "fields": {"memory_usage_bytes": 5},
                "name": "kubernetes_pod_container",
                "tags": {**{"container_name": "app", "host": "telegraf-0", "namespace": "shop", "node_name": "n1"},
                         "pod_name": POD},
                "timestamp": NOON // 1000,
            }
        ).encode(),
        CART,
    ),
    "Telegraf, kube_inventory, of a node": (
        json.dumps(
            {
                "fields": {"capacity_pods": 110},
                "name": "kubernetes_node",
                "tags": {"host": "telegraf-0", "node_name": "n1"},
                "timestamp": NOON // 1000,
            }
        ).encode(),
        "telegraf-0",
    ),
    "Influx line of Telegraf": (
        f"kubernetes_pod_network,host=t,namespace=shop,node_name=n1,pod_name={POD} rx_bytes=5i {NOON}000000".encode(),
        CART,
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", METRICS)
def test_samples_of_agents_are_of_the_pod_that_they_are_about(case: str) -> None:
    value, machine = METRICS[case]
    assert {row["entity"] for row in read(value)} == {machine}


LOGS: dict[str, tuple[bytes, str]] = {
    "Filebeat": (
        json.dumps(
            {
                **{"@timestamp": "2026-11-28T10:15:00Z", "message": "no", "host": {"name": "n1"}},
                "kubernetes": {
                    **{"namespace": "shop", "node": {"name": "n1"}, "pod": {"name": POD}, "container": {"name": "app"}},
                    "deployment": {"name": "cart"},
                },
            }
        ).encode(),
        CART,
    ),
    "Fluent Bit": (
        json.dumps(
            {
                **{"date": 1795860900.0, "log": "no\n", "stream": "stdout"},
                "kubernetes": {
                    **{"pod_name": POD, "namespace_name": "shop", "host": "n1", "container_name": "app"},
                    "pod_id": "6f5e",
                },
            }
        ).encode(),
        CART,
    ),
    "Vector": (
        json.dumps(
            {
                **{"timestamp": "2026-11-28T10:15:00Z", "message": "no", "source_type": "kubernetes_logs"},
                "kubernetes": {
                    **{"pod_name": POD, "pod_namespace": "shop", "pod_node_name": "n1", "container_name": "app"},
                    "pod_owner": "ReplicaSet/cart-7d4b9c6f5",
                },
            }
        ).encode(),
        CART,
    ),
    "fields with dots": (
        json.dumps(
            {
                **{"@timestamp": "2026-11-28T10:15:00Z", "message": "no", "host.name": "n1"},
                **{"kubernetes.namespace": "shop", "kubernetes.pod.name": POD},
            }
        ).encode(),
        CART,
    ),
    "Splunk's collector, by Splunk Connect for Kubernetes": (
        json.dumps(
            {
                **{"time": 1795860900.0, "host": "n1", "sourcetype": "kube:container:app", "event": "no"},
                "fields": {"pod": POD, "namespace": "shop", "container_name": "app"},
            }
        ).encode(),
        CART,
    ),
    "DogStatsD, an event": (f"_e{{1,2}}:a|no|h:n1|#pod_name:{POD},kube_namespace:shop".encode(), CART),
    "OTLP": (otlp_log({**OTEL, "service.name": "cart", "host.name": "n1"}), CART),
    "a controller that speaks of a pod": (
        json.dumps(
            {"ts": "2026-11-28T10:15:00Z", "msg": "evicts", "pod": POD, "namespace": "shop", "host": "n1"}
        ).encode(),
        "n1",
    ),
}


@pytest.mark.parametrize("case", LOGS)
def test_log_lines_are_of_the_pod_that_wrote_them(case: str) -> None:
    value, machine = LOGS[case]
    (row,) = read(value, topic="logs.agents")
    assert row["entity"] == machine
    (row,) = read(value, topic="logs.agents", pods=False)
    assert row["entity"] == "n1"


def test_metrics_and_logs_of_a_pod_are_one_machine() -> None:
    told = [read(value) for value, machine in METRICS.values() if machine == CART]
    told += [read(value, topic="logs.agents") for value, machine in LOGS.values() if machine == CART]
    assert {row["entity"] for each in told for row in each} == {CART}
