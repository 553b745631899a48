"""What Metricbeat, Elastic Agent and Telegraf say of pods, in the words of OpenTelemetry.

Only what names a pod for certain counts: the fields below ``kubernetes`` of a document, and the tags of Telegraf's
measurements of pods. The host of a document is that of the agent, and containers of Docker are metrics of their host.

Source: the exported fields of Beats' ``add_kubernetes_metadata`` and of Metricbeat's module ``kubernetes``; the tags of
Telegraf's inputs ``kubernetes`` and ``kube_inventory`` as their READMEs list them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pipelines.formats.metricbeat import text_at
from pipelines.formats.placements.resources import Pairs

MEASUREMENTS = "kubernetes_pod_"
"""How the names of Telegraf's measurements of pods begin: ``kubernetes_pod_container``, ``_network``, ``_volume``."""
_TAGS = (("namespace", "k8s.namespace.name"), ("pod_name", "k8s.pod.name"), ("node_name", "k8s.node.name"))
_PARTS = ("pod", "node", "deployment", "statefulset", "daemonset", "cronjob", "job", "replicaset")


def of_document(document: Mapping[str, Any]) -> Pairs:
    """The attributes of the pod that a document of Metricbeat is about; empty if it is about none.

    >>> of_document({"kubernetes": {"namespace": "shop", "pod": {"name": "db-0"}, "node": {"name": "n1"}}})
    (('k8s.namespace.name', 'shop'), ('k8s.pod.name', 'db-0'), ('k8s.node.name', 'n1'))
    >>> of_document({"kubernetes": {"node": {"name": "n1", "cpu": {"usage": 5}}}})
    ()
    """
    fields = {name: text_at(document, f"kubernetes.{name}.name") for name in ("namespace", *_PARTS)}
    fields["namespace"] = fields["namespace"] or text_at(document, "kubernetes.namespace")
    return tuple((f"k8s.{name}.name", value) for name, value in fields.items() if value) if fields["pod"] else ()


def of_measurement(name: str, tags: Mapping[str, str]) -> Pairs:
    """The attributes of the pod that a measurement of Telegraf is about; empty if it is about none.

    >>> of_measurement("kubernetes_pod_network", {"host": "a", "pod_name": "db-0", "node_name": "n1"})
    (('k8s.pod.name', 'db-0'), ('k8s.node.name', 'n1'))
    >>> of_measurement("docker_container_cpu", {"host": "a", "container_name": "db", "pod_name": "db-0"})
    ()
    """
    if not (name.startswith(MEASUREMENTS) and tags.get("pod_name")):
        return ()
    return tuple((attribute, value) for tag, attribute in _TAGS if (value := tags.get(tag)))
