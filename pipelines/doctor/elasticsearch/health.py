"""Checks the health of Elasticsearch: shards that are nowhere, and the disk of its nodes."""

from __future__ import annotations

from typing import Any

from elasticsearch import ApiError

from pipelines.contracts.quantities.cells import size
from pipelines.doctor.context import Context
from pipelines.doctor.finding import Finding, Severity, subject

_kind = subject("Elasticsearch")
_RED = _kind(
    "ELASTICSEARCH_RED",
    Severity.BROKEN,
    "a primary shard has no node: its index can be neither read nor written; the reason is Elasticsearch's",
    "see the reason: bring the node back, or restore the index from a snapshot; a replay computes verdicts anew",
)  # fmt: skip
_YELLOW = _kind(
    "ELASTICSEARCH_YELLOW",
    Severity.NOTE,
    "a copy of a shard has no node: nothing is lost, but the loss of a node would lose documents",
    "add a node, or set `number_of_replicas` of that index to 0",
)
_DISK = _kind(
    "ELASTICSEARCH_DISK",
    Severity.AT_RISK,
    "a node has less free disk than Elasticsearch's flood-stage watermark wants: its indices become read-only, or the "
    "disk fills up where that protection is off, as on the embedded node",
    "free disk space on that node; `newnormal retention`, with `retention.indices`, deletes old indices (archive.md)",
)  # fmt: skip
_FLOOD = "cluster.routing.allocation.disk.watermark.flood_stage"


def health(context: Context) -> list[Finding]:
    """Finds that the state of the cluster is red or yellow, with the reason for one of the shards."""
    state = context.elasticsearch.cluster.health(level="indices")
    if state["status"] == "green":
        return []
    bad = sorted(name for name, index in state["indices"].items() if index["status"] == state["status"])
    what = f"{len(bad)} indices are {state['status']}, e.g. {', '.join(bad[:3])}; {_why(context)}"
    return [Finding(_RED if state["status"] == "red" else _YELLOW, what, context.url)]


def _why(context: Context) -> str:
    """Elasticsearch's own explanation of the first shard without a node."""
    try:
        explanation = context.elasticsearch.cluster.allocation_explain()
    except ApiError as error:  # assigned meanwhile
        return f"no explanation: {error.message}"
    decisions = explanation.get("node_allocation_decisions", ())
    reasons = [decider["explanation"] for node in decisions for decider in node["deciders"]]
    shown = [explanation.get("allocate_explanation") or "", *dict.fromkeys(reasons)][:2]
    return f"{explanation['index']}: {'; '.join(text for text in shown if text)}"


def disk(context: Context) -> list[Finding]:
    """Finds nodes whose free disk is below the flood-stage watermark, as Elasticsearch itself says it."""
    limit = _setting(context, _FLOOD)
    guarded = _setting(context, "cluster.routing.allocation.disk.threshold_enabled") == "true"
    findings = []
    for node in context.elasticsearch.nodes.stats(metric="fs")["nodes"].values():
        total, free = node["fs"]["total"]["total_in_bytes"], node["fs"]["total"]["available_in_bytes"]
        if (least := must_be_free(limit, total)) > free:
            then = (
                "its indices are made read-only" if guarded else "that protection is off: writing fails when it is full"
            )
            what = f"{size(free)} of {size(total)} are free, the flood stage {limit} begins below {size(least)}; {then}"
            findings.append(Finding(_DISK, what, f"Elasticsearch node {node['name']}"))
    return findings


def must_be_free(watermark: str, total: int) -> float:
    """The bytes that must be free for a disk watermark: a part of the disk that may be used, or bytes to keep free.

    >>> must_be_free("95%", 1000), must_be_free("0.75", 1000), must_be_free("2gb", 1000) == 2 << 30
    (50.0, 250.0, True)
    """
    text = watermark.strip().lower()
    for unit, shift in (("pb", 50), ("tb", 40), ("gb", 30), ("mb", 20), ("kb", 10), ("b", 0)):
        if text.endswith(unit):
            return float(text.removesuffix(unit)) * (1 << shift)
    used = float(text.removesuffix("%")) / 100 if text.endswith("%") else float(text)
    return round(total * (1 - used), 3)


def _setting(context: Context, name: str) -> str:
    """A setting of the cluster: what was set at run time, else in the node's file, else the default."""
    told: Any = context.elasticsearch.cluster.get_settings(include_defaults=True, flat_settings=True)
    return str(next(told[part][name] for part in ("transient", "persistent", "defaults") if name in told[part]))
