"""The names of the Kafka topics and the configuration of each, which depends on who writes it.

`pipelines.jobs` says which jobs read and write which topic.
"""

from __future__ import annotations

from typing import Any

from engine.kafka.exactly_once import LEDGER_TOPIC

RAW_JSON = "telemetry.json"
RAW_TELEGRAF = "telemetry.telegraf"
RAW_COLLECTD = "telemetry.collectd"
LOGS_JSON = "logs.json"
LOGS_RSYSLOG = "logs.rsyslog"
TELEMETRY = "telemetry"
FEATURES = "features"
FEATURES_LATE = "features.late"
LOGS = "logs"
LOGS_LATE = "logs.late"
LOG_FEATURES = "features.logs"
NOVELTIES = "novelties"
NOVELTIES_LATE = "novelties.late"
LOG_FEATURES_LATE = "features.logs.late"
RULES = "rules"
LABELS = "labels"
DEADLETTER = "deadletter"
GROUNDTRUTH = "groundtruth"
LEDGER = LEDGER_TOPIC
VERSIONS = "newnormal.versions"

FROM_AGENTS = (RAW_JSON, RAW_TELEGRAF, RAW_COLLECTD, LOGS_JSON, LOGS_RSYSLOG)
"""Topics that agents write."""

FROM_OPERATORS = (RULES, LABELS)
"""Topics of control messages for the detectors; operators write them by `newnormal rule` and `newnormal label`."""

FROM_JOBS = (
    *(TELEMETRY, FEATURES, FEATURES_LATE, LOGS, LOGS_LATE, LOG_FEATURES),
    *(NOVELTIES, NOVELTIES_LATE, LOG_FEATURES_LATE),
)
"""Topics that jobs write."""

SHARED = (DEADLETTER, GROUNDTRUTH, LEDGER)
"""Topics that all jobs write (dead letters, ledger), and the ground truth that the simulator writes."""

OF_ALL_VERSIONS = frozenset({*FROM_AGENTS, *FROM_OPERATORS, GROUNDTRUTH, LEDGER, VERSIONS})
"""Topics of which there is one for all versions of the chain; see `pipelines.contracts.version_names`."""

NAMES = (*FROM_AGENTS, *FROM_OPERATORS, *FROM_JOBS, *SHARED)
"""All topics."""

LATE = ".late"
"""Suffix of the topics that carry records which came too late."""

_DAY_MS = 86_400_000


def config(name: str, retention_days: int = 7) -> dict[str, Any]:
    """The configuration with which a topic is created.

    Args:
        name: One of `NAMES`, without the namespace.
        retention_days: Days for which Kafka keeps messages; rules and labels are kept for ever.
    """
    stamped = {"message.timestamp.type": "LogAppendTime"}  # the writer's clock must not decide the watermark
    if name == VERSIONS:
        return {"cleanup.policy": "compact"}
    if name in FROM_OPERATORS:  # compaction keeps the last message of each key; heartbeats, too, leave only the last
        return {"cleanup.policy": "compact", **stamped}
    kept = {"retention.ms": str(retention_days * _DAY_MS), "max.message.bytes": "16000000"}
    return kept | stamped if name in FROM_AGENTS else kept


def configs() -> dict[str, dict[str, Any]]:
    """The configuration of every topic, by its name without the namespace."""
    return {name: config(name) for name in NAMES}
