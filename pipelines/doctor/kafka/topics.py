"""Checks that the chain's topics exist, have the partitions of the settings, and keep messages for long enough."""

from __future__ import annotations

from typing import Any

from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType  # type: ignore[attr-defined]

from engine.address import kafka_options
from engine.kafka.admin import partition_counts
from pipelines.contracts.quantities.words import duration
from pipelines.doctor.context import Context
from pipelines.doctor.finding import Finding, Severity, subject
from pipelines.jobs.chain import JOBS
from pipelines.jobs.links import LINKS, TOPICS

_kind = subject("Kafka")
_NONE = _kind(
    "NEVER_STARTED",
    Severity.NOTE,
    "Kafka has none of the topics: no job ever ran with this broker and namespace",
    "`newnormal run`, or the right `--namespace` and `--kafka`",
)
_MISSING = _kind(
    "TOPICS_MISSING",
    Severity.BROKEN,
    "some of the chain's topics do not exist, though others do",
    "`newnormal run` creates them; find out who deleted them, as checkpoints expect their messages",
)
_PARTITIONS = _kind(
    "PARTITIONS_FIXED",
    Severity.BROKEN,
    "topics have another number of partitions than `kafka.partitions`: a start is refused",
    "set `kafka.partitions` to that number, or use a new `namespace`",
)
_RETENTION = _kind(
    "RETENTION_SHORT",
    Severity.AT_RISK,
    "a topic keeps messages for a shorter time than late records are waited for: a restarted job may not find them",
    "a `kafka.retention` of days; it must be longer than `window.allowed_lateness` and any outage",
)  # fmt: skip


def topics(context: Context) -> list[Finding]:
    """Finds missing topics, other numbers of partitions, and a short retention."""
    settings = context.settings
    names = {settings.reads(name) for name in TOPICS}
    counts = partition_counts(context.bootstrap, names, timeout=10.0)
    if not counts:
        return [Finding(_NONE, f"none of the {len(names)} topics exists", context.bootstrap)]
    findings = []
    if missing := sorted(names - counts.keys()):
        findings.append(Finding(_MISSING, f"{len(missing)} of {len(names)} topics do not exist", ", ".join(missing)))
    read = {topic for job in JOBS for topic in LINKS[job].reads(settings)}
    mine = settings.kafka.partitions
    others = {topic: count for topic, count in sorted(counts.items()) if topic in read and count != mine}
    if others:
        there = ", ".join(f"{topic} has {count}" for topic, count in others.items())
        findings.append(Finding(_PARTITIONS, f"kafka.partitions = {mine}, but {there}", "kafka.partitions"))
    return findings + _retention(context, sorted(counts))


def _retention(context: Context, names: list[str]) -> list[Finding]:
    settings = context.settings
    least = settings.window.open_for_ms
    quiet: dict[str, Any] = {"log_level": 0, "error_cb": lambda _error: None}
    client = AdminClient({**kafka_options(context.bootstrap), **quiet})
    asked = client.describe_configs([ConfigResource(ResourceType.TOPIC, name) for name in names], request_timeout=10.0)
    short: dict[int, list[str]] = {}
    for resource, future in asked.items():
        entries = future.result(11.0)
        kept = int(entries["retention.ms"].value)
        if "delete" in entries["cleanup.policy"].value and 0 <= kept < least:
            short.setdefault(kept, []).append(resource.name)
    return [
        Finding(
            _RETENTION,
            f"messages are kept for {duration(kept)}, late records are waited for {duration(least)} (window.size and "
            "window.allowed_lateness)",
            ", ".join(sorted(those)),
        )
        for kept, those in sorted(short.items())
    ]
