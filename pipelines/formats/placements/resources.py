"""What the attributes of an OTLP resource say of its machine: semantic conventions of Kubernetes, containers, hosts.

Source: OpenTelemetry's semantic conventions for resources, and the attributes that the collector's processors
``k8sattributes`` and ``resourcedetection`` add; the labels of Docker Compose as receivers of the collector name them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from engine.columns.replicas import HASH, MINUTES
from pipelines.formats.labels import LabelRule
from pipelines.formats.placements.facts import Fact
from pipelines.formats.pods import within

_WORKLOADS = ("deployment", "statefulset", "daemonset", "cronjob", "job")
_COMPOSE = "com.docker.compose."
_OTHERS = ("aws.ecs.task.family", "nomad.job.name")
_HASH, _MINUTES = re.compile(HASH), re.compile(MINUTES)

Pairs = tuple[tuple[str, str], ...]


def machine_of(rule: LabelRule, pairs: Pairs) -> str:
    """The machine that attributes name, as that of metrics with these attributes; empty if they name none."""
    return rule.apply(pairs)[0]


def pod_of(rule: LabelRule, namespace: str, pod: str) -> str:
    """The name of a pod as a machine: as that of metrics which name the pod and nothing else."""
    found = (("k8s.namespace.name", namespace), ("k8s.pod.name", pod))
    return machine_of(rule, tuple(pair for pair in found if pair[1])) or pod


def owner(kind: str, name: str) -> str:
    """The workload whose pods belong to an owner: a replica set is one of a deployment, a job may be one of a cron job.

    Kubernetes names them so that the name says whose they are: no other message is needed to know it.

    >>> owner("ReplicaSet", "cart-7d4b9c6f5"), owner("ReplicaSet", "alone"), owner("Job", "report-29384700")
    ('cart', 'alone', 'report')
    >>> owner("StatefulSet", "db"), owner("Node", "node-1")
    ('db', '')
    """
    if kind == "Node":  # a static pod
        return ""
    pattern = {"ReplicaSet": _HASH, "Job": _MINUTES}.get(kind)
    dash = name.rfind("-")
    return name[:dash] if pattern and dash > 0 and pattern.fullmatch(name, dash) else name


def workload_of(attributes: Mapping[str, str]) -> str | None:
    """What the machine of a resource is a replica of.

    >>> workload_of({"k8s.namespace.name": "shop", "k8s.replicaset.name": "cart-7d4b9c6f5"})
    'shop/cart'
    >>> workload_of({f"container.label.{_COMPOSE}project": "a", f"container.label.{_COMPOSE}service": "b"})
    'a/b'
    """
    namespace = attributes.get("k8s.namespace.name", "")
    for kind in _WORKLOADS:
        if name := attributes.get(f"k8s.{kind}.name"):
            return within(namespace, owner("Job", name) if kind == "job" else name)
    if name := attributes.get("k8s.replicaset.name"):
        return within(namespace, owner("ReplicaSet", name))
    compose = {key.rpartition(_COMPOSE)[2]: value for key, value in attributes.items() if _COMPOSE in key}
    if service := compose.get("service"):
        return within(compose.get("project", ""), service)
    return next((attributes[name] for name in _OTHERS if attributes.get(name)), None)


def facts(rule: LabelRule, pairs: Pairs) -> tuple[Fact, ...]:
    """What the attributes of a resource say.

    The node is named as `k8s.node.name` has it. Where metrics name it otherwise (`host.name`) and say both, the node
    runs on what they name, so that pods on it and its own metrics come together.

    >>> from pipelines.formats.labels import LABELS
    >>> facts(LABELS, (("k8s.pod.name", "db-0"), ("k8s.node.name", "n1"), ("host.name", "db-0")))[0][:2]
    ('db-0', 'n1')
    >>> facts(LABELS, (("host.name", "ip-10-0-0-5"), ("k8s.node.name", "n1")))[0][:2]
    ('n1', 'ip-10-0-0-5')
    """
    attributes = {key: value for key, value in pairs if value}
    machine, workload = machine_of(rule, pairs), workload_of(attributes)
    host, node = attributes.get("host.name"), attributes.get("k8s.node.name")
    name, namespace = attributes.get("k8s.pod.name"), attributes.get("k8s.namespace.name", "")
    pod = pod_of(rule, namespace, name) if name else None
    found = []
    if pod and name:
        below = node or (host if host != name else None)
        found.append(Fact(pod, below, workload))
        if machine not in (host, node):  # a container, or a process in it
            found.append(Fact(machine, pod, workload))
    elif machine == host and node and host:
        found.append(Fact(node, host))
    elif machine != node:
        found.append(Fact(machine, host or node, workload))
    return tuple(fact for fact in dict.fromkeys(found) if fact.is_sound)
