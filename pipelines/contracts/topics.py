"""The Kafka topics: their names, and how each is configured by who writes it.

How they join the jobs is said in `pipelines.jobs`.
"""

from __future__ import annotations

from typing import Any

from engine.kafka.ledger import LEDGER_TOPIC

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

FROM_AGENTS = (RAW_JSON, RAW_TELEGRAF, RAW_COLLECTD, LOGS_JSON, LOGS_RSYSLOG)
"""What agents write."""

FROM_OPERATORS = (RULES, LABELS)
"""What operators write, by `newnormal rule` and `newnormal label`: control messages for the detectors."""

FROM_JOBS = (
    *(TELEMETRY, FEATURES, FEATURES_LATE, LOGS, LOGS_LATE, LOG_FEATURES),
    *(NOVELTIES, NOVELTIES_LATE, LOG_FEATURES_LATE),
)
"""What jobs write, each one or two."""

SHARED = (DEADLETTER, GROUNDTRUTH, LEDGER)
"""What any job writes, and the ground truth of a simulation."""

NAMES = (*FROM_AGENTS, *FROM_OPERATORS, *FROM_JOBS, *SHARED)
"""All topics."""

LATE = ".late"
"""How the names of the topics end that carry what came too late."""

_DAY_MS = 86_400_000


def config(name: str, retention_days: int = 7) -> dict[str, Any]:
    """The configuration with which a topic is made.

    Args:
        name: One of `NAMES`, without the namespace.
        retention_days: How long what was written is kept; what operators said is kept for good.
    """
    stamped = {"message.timestamp.type": "LogAppendTime"}  # the writer's clock must not decide the watermark
    if name in FROM_OPERATORS:  # compaction keeps of heartbeats only the last
        return {"cleanup.policy": "compact", **stamped}
    kept = {"retention.ms": str(retention_days * _DAY_MS), "max.message.bytes": "16000000"}
    return kept | stamped if name in FROM_AGENTS else kept


def configs() -> dict[str, dict[str, Any]]:
    """The configuration of every topic, by its name without the namespace."""
    return {name: config(name) for name in NAMES}
