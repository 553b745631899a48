"""What series of kube-state-metrics, the kubelet and the node exporter say of places and ends, whatever carries them.

Of cadvisor's series, which the kubelet serves, ``container_memory_working_set_bytes`` is looked at: each container and
each pod has it. It says where the pod is only if the scraper adds the label ``node``, as the Prometheus operator's
charts do.

Of what is ended, names are those that Kubernetes accepts: a name that is a glob, or anything else, ends nothing.

Source: the documentation of kube-state-metrics' metrics of pods, jobs and nodes (``docs/metrics``), cadvisor's list of
metrics with the labels that the kubelet gives them, the node exporter's collector ``uname``, and the documentation of
Kubernetes: phases of pods, names of objects (RFC 1123), ``metadata.deletionTimestamp``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from math import isnan

from pipelines.formats.labels import LabelRule
from pipelines.formats.placements.facts import Condition, Fact
from pipelines.formats.placements.resources import machine_of, owner, pod_of
from pipelines.formats.pods import within

_OF_CONTAINERS = "container_memory_working_set_bytes"
_OF_PLACES = ("kube_pod_info", "kube_pod_owner", "node_uname_info", _OF_CONTAINERS)
_PHASE, _DELETION = "kube_pod_status_phase", "kube_pod_deletion_timestamp"
_JOB, _NODE = "kube_job_complete", "kube_node_spec_unschedulable"
SERIES = (*_OF_PLACES, _PHASE, _DELETION, _JOB, _NODE)
"""The series that are looked at."""

_NONE = ("", "<none>")
_NAME = re.compile(r"[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?")
_SCHEDULING: Mapping[float, Condition] = {1.0: "cordoned", 0.0: "schedulable"}
_LAST = 1e11
"""No deletion is later, epoch seconds: such a value is no time."""


def facts(rule: LabelRule, name: str, labels: Mapping[str, str], value: float) -> tuple[Fact, ...]:
    """What a sample of a series says; nothing at NaN, which says that the series has ended.

    Where Prometheus knows the labels ``namespace`` and ``pod`` of what it scrapes, it renames those of the series to
    ``exported_namespace`` and ``exported_pod``, which then are those that count.

    Args:
        rule: How metrics name machines.
        name: The name of the series, one of `SERIES`.
        labels: Its labels.
        value: Its value.

    >>> from pipelines.formats.labels import LABELS
    >>> facts(LABELS, "node_uname_info", {"instance": "10.0.0.5:9100", "nodename": "n1"}, 1.0)[0].parent
    '10.0.0.5'
    >>> facts(LABELS, "kube_node_spec_unschedulable", {"node": "n1"}, 0.0)[0].condition
    'schedulable'
    """
    if name not in _OF_PLACES:
        return _condition(rule, name, labels, value)
    if value != 1.0 and (name != _OF_CONTAINERS or isnan(value)):
        return ()
    if name == "node_uname_info":
        scraped = {key: value for key, value in labels.items() if key != "nodename"}
        found = Fact(labels.get("nodename", ""), machine_of(rule.scraped, tuple(scraped.items())))
    else:
        namespace, pod, on = (_own(labels, key) for key in ("namespace", "pod", "node"))
        by = "created_by" if name == "kube_pod_info" else "owner"
        kind, owned = labels.get(f"{by}_kind", ""), labels.get(f"{by}_name", "")
        above = "" if kind in _NONE or owned in _NONE else owner(kind, owned)
        node = on if name != "kube_pod_owner" and on not in _NONE else None
        machine = pod_of(rule, namespace, pod) if pod else ""
        found = Fact(machine, node, within(namespace, above) if above else None)
    return (found,) if found.is_sound else ()


def _own(labels: Mapping[str, str], key: str) -> str:
    return labels.get(f"exported_{key}") or labels.get(key, "")


def _condition(rule: LabelRule, name: str, labels: Mapping[str, str], value: float) -> tuple[Fact, ...]:
    """In which condition a pod, a job or a node is.

    A pod that has succeeded, and a job that is complete, have ended on purpose; one that has failed has not. What has a
    time of deletion is being ended by whoever asked for that.
    """
    namespace = _own(labels, "namespace")
    parts: tuple[str, ...]
    condition: Condition | None = None
    seen = None
    if name == _NODE:
        parts = (_own(labels, "node"),)
        condition = _SCHEDULING.get(value)
    elif name == _JOB:
        parts = (namespace, labels.get("job_name", ""))
        condition = "ended" if value == 1.0 and labels.get("condition") == "true" else None
    else:
        parts = (namespace, _own(labels, "pod"))
        if name == _PHASE:
            condition = "ended" if value == 1.0 and labels.get("phase") == "Succeeded" else None
        elif 0.0 < value < _LAST:
            condition, seen = "ending", int(value * 1000)
    if condition is None or not all(map(_NAME.fullmatch, parts)):
        return ()
    machine = "/".join(parts)
    if name in (_PHASE, _DELETION) and pod_of(rule, *parts) != machine:  # its metrics are of another machine
        return ()
    return (Fact(machine, condition=condition, seen=seen),)
