"""The Kafka topics, by what they carry."""

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
RULES = "rules"
LABELS = "labels"
DEADLETTER = "deadletter"
GROUNDTRUTH = "groundtruth"
LEDGER = LEDGER_TOPIC

_DAY_MS = 86_400_000


def configs(retention_days: int = 7) -> dict[str, dict[str, Any]]:
    """Every topic and its configuration."""
    kept = {"retention.ms": str(retention_days * _DAY_MS), "max.message.bytes": "16000000"}
    names = (
        RAW_JSON,
        RAW_TELEGRAF,
        RAW_COLLECTD,
        LOGS_JSON,
        LOGS_RSYSLOG,
        TELEMETRY,
        FEATURES,
        FEATURES_LATE,
        LOGS,
        LOGS_LATE,
        LOG_FEATURES,
        NOVELTIES,
        NOVELTIES_LATE,
    )
    every = {name: dict(kept) for name in (*names, DEADLETTER, GROUNDTRUTH, LEDGER)}
    for name in (RAW_JSON, RAW_TELEGRAF, RAW_COLLECTD, LOGS_JSON, LOGS_RSYSLOG):
        every[name]["message.timestamp.type"] = "LogAppendTime"  # an agent's clock must not vouch for itself
    for name in (RULES, LABELS):  # what people said is kept; of heartbeats compaction leaves the last
        every[name] = {"cleanup.policy": "compact", "message.timestamp.type": "LogAppendTime"}
    return every
