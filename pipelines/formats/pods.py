"""Which pod of Kubernetes labels or fields are about, and what its labels need not say again.

The label ``pod`` names what a sample is about (cadvisor, kube-state-metrics), or what was scraped (applications), which
is then the same. It is not so for what exporters say of nodes and of the cluster, see `subject`. Labels such as
``dst_pod`` or ``target_pod``, as of a service mesh, name another pod than that which the sample is about, and stay
labels.

Sources: the labels of cadvisor and kube-state-metrics; Prometheus' ``honor_labels`` (``exported_``); OpenTelemetry's
semantic conventions for Kubernetes; the fields of Metricbeat, Filebeat, Fluent Bit, Vector and Google Cloud; the tags
of Telegraf's inputs ``kubernetes`` and ``kube_inventory`` and of Datadog.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Literal

Subject = Literal["pod", "container", "node", "workload"]

SHIPPED = (
    ("k8s.pod.name", ("k8s.namespace.name",)),
    ("kubernetes.pod.name", ("kubernetes.namespace", "kubernetes.namespace.name")),
    ("kubernetes.pod_name", ("kubernetes.namespace_name", "kubernetes.pod_namespace")),
    ("resource.labels.pod_name", ("resource.labels.namespace_name",)),
    ("io.kubernetes.pod.name", ("io.kubernetes.pod.namespace",)),
)
"""Names that only shippers and agents give: the pod, and its namespace. An application's own ``pod`` may be any pod."""

_LABELS = (
    ("exported_pod", ("exported_namespace", "namespace")),
    *SHIPPED,
    ("pod", ("namespace",)),
    ("pod_name", ("namespace", "pod_namespace", "namespace_name", "kube_namespace")),
    ("k8s_pod_name", ("k8s_namespace_name",)),
)
"""Labels of metrics: the first pod that is there counts."""

FIELDS = tuple(dict.fromkeys(name for pod, namespaces in SHIPPED for name in (pod, *namespaces)))

NODES = frozenset(
    (
        *("node", "nodename", "node_name", "hostname", "instance", "host.name", "agent.hostname", "k8s.node.name"),
        *("kubernetes.node.name", "kubernetes.node.hostname", "kubernetes.host", "kubernetes.pod_node_name"),
        *("exported_instance", "exported_node"),
    )
)
"""Labels that say where a pod runs, or at which address it was asked: they do not distinguish two of its series."""

_PROCESS = "service.instance.id"
"""One of several processes of a pod, unless it holds the name of the pod."""

_OWNERS = ("deployment", "replicaset", "statefulset", "daemonset", "job", "cronjob")
_IMPLIED = frozenset(
    (
        *(f"{prefix}.{owner}.name" for prefix in ("k8s", "kubernetes") for owner in _OWNERS),
        *("created_by_kind", "created_by_name", "pod_template_hash", "pod-template-hash", "controller_revision_hash"),
        *("uid", "pod_uid", "k8s.pod.uid", "kubernetes.pod.uid", "pod_ip", "host_ip", "host_network", "replicaset"),
        *("kubernetes.pod.ip", "image", "image_id", "image_spec", "container_id", "container.id"),
    )
)
"""Labels that follow from the pod, of which most are others with each release."""

_OF_CONTAINERS = frozenset(("id", "name"))
"""Labels of cadvisor that say again which container it is, by an id that is another after each restart."""

_OF_EXPORTERS = frozenset(("pod", "container", "endpoint"))
"""Labels that name the pod of an exporter in what it says of something else."""

_WORKLOADS = ("deployment", "statefulset", "daemonset", "cronjob", "job_name")
_NODE_METRICS = re.compile(r"node_(?!namespace_pod)|windows_|kube_node_|probe_|system\.|k8s\.node\.")
_POD_NAME = re.compile(r"(?=.*[a-z])[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?")


@lru_cache(maxsize=1 << 14)
def subject(metric: str) -> Subject:
    """What a metric is about if a label names a pod, by the names that exporters give their metrics.

    >>> [subject(name) for name in ("http_requests_total", "container_cpu_usage_seconds_total", "node_load1")]
    ['pod', 'container', 'node']
    >>> [subject(name) for name in ("kube_pod_status_ready", "kube_node_info", "kube_deployment_status_replicas")]
    ['pod', 'node', 'workload']
    """
    if metric.startswith("container_"):
        return "container"
    if _NODE_METRICS.match(metric):
        return "node"
    return "workload" if metric.startswith("kube_") and not metric.startswith("kube_pod_") else "pod"


def divided(labels: dict[str, str], about: Subject, host_is_node: bool) -> tuple[str, dict[str, str]]:
    """The pod or workload that labels are about, empty if they are about none; and the labels that are left.

    Args:
        labels: Names and values.
        about: What their metric is about, see `subject`.
        host_is_node: Whether a label ``host`` is where the pod runs, rather than what it serves.

    >>> divided({"namespace": "shop", "pod": "cart-0", "instance": "10.0.0.5:80", "code": "200"}, "pod", False)
    ('shop/cart-0', {'code': '200'})
    >>> divided({"namespace": "shop", "deployment": "cart", "pod": "exporter"}, "workload", False)
    ('shop/cart', {})
    >>> divided({"instance": "a", "pod": "exporter", "cpu": "0"}, "node", False)
    ('', {'instance': 'a', 'cpu': '0'})
    """
    if about in ("node", "workload"):
        others = {name: value for name, value in labels.items() if name not in _OF_EXPORTERS}
        owner = next((each for each in _WORKLOADS if each in others), None) if about == "workload" else None
        if owner and (space := others.get("exported_namespace") or others.get("namespace")):
            again = {owner, "namespace", "exported_namespace", "instance", "uid"}
            return f"{space}/{labels[owner]}", {name: value for name, value in others.items() if name not in again}
        return "", others
    machine, naming = _found(labels, _LABELS)
    if not machine:
        return "", labels
    dropped = naming | NODES | _IMPLIED | (_OF_CONTAINERS if about == "container" else frozenset())
    dropped |= {"host"} if host_is_node else frozenset()
    own = machine.rpartition("/")[2]
    left = {name: value for name, value in labels.items() if name not in dropped}
    if own in left.get(_PROCESS, ""):  # OpenTelemetry's operator writes namespace.pod.container
        del left[_PROCESS]
    return machine, left


def pod_of(fields: Mapping[str, str]) -> str:
    """The pod in the fields of a log line, by the names that only shippers give; empty if there is none.

    >>> pod_of({"kubernetes.pod_name": "cart-0", "kubernetes.namespace_name": "shop"}), pod_of({"pod": "cart-0"})
    ('shop/cart-0', '')
    """
    return _found(fields, SHIPPED)[0]


def tagged_pod(tags: Mapping[str, str]) -> str:
    """The pod in tags that agents give, by the names of labels, too; empty if there is none."""
    return _found(tags, _LABELS)[0]


def _found(labels: Mapping[str, str], names: tuple[tuple[str, tuple[str, ...]], ...]) -> tuple[str, frozenset[str]]:
    """The first pod that is named, and all labels that name a pod or its namespace in this way or another."""
    for name, spaces in names:
        space = next((value for each in spaces if (value := labels.get(each))), "")
        if pod := pod_name(labels.get(name), space):
            naming = [(label, *others) for label, others in names if label in labels]
            return pod, frozenset(each for group in naming for each in group)
    return "", frozenset()


def pod_name(name: object, namespace: str) -> str:
    """The machine that a pod is, empty if the name is that of no pod; such as ``pod: 7``, where racks stand in pods.

    >>> pod_name("cart-0", "shop"), pod_name("cart-0", ""), pod_name("7", "shop"), pod_name("A/B", "")
    ('shop/cart-0', 'cart-0', '', '')
    """
    if type(name) is not str or not _POD_NAME.fullmatch(name):
        return ""
    return within(namespace, name)


def within(namespace: str, name: str) -> str:
    """A name in a namespace.

    >>> within("shop", "cart"), within("", "cart")
    ('shop/cart', 'cart')
    """
    return f"{namespace}/{name}" if namespace else name
