"""The names of the Kafka topics and the configuration of each, which depends on who writes it.

`pipelines.jobs.links` says which jobs read and write which topic.
"""

from __future__ import annotations

from engine.kafka.exactly_once import LEDGER_TOPIC

RAW_JSON = "telemetry.json"
RAW_TELEGRAF = "telemetry.telegraf"
RAW_COLLECTD = "telemetry.collectd"
RAW_AGENTS = "telemetry.agents"
LOGS_JSON = "logs.json"
LOGS_RSYSLOG = "logs.rsyslog"
LOGS_AGENTS = "logs.agents"
TELEMETRY = "telemetry"
FEATURES = "features"
FEATURES_LATE = "features.late"
LOGS = "logs"
LOGS_LATE = "logs.late"
LOG_FEATURES = "features.logs"
NOVELTIES = "novelties"
STATE = "detector.state"
NEWS = "novelties.news"
LOG_NEWS = "novelties.news.logs"
INCIDENTS = "incidents"
NOVELTIES_LATE = "novelties.late"
LOG_FEATURES_LATE = "features.logs.late"
RULES = "rules"
LABELS = "labels"
TOPOLOGY = "topology"
ACKNOWLEDGEMENTS = "acknowledgements"
SILENCES = "silences"
CHANGES = "changes"
DEADLETTER = "deadletter"
GROUNDTRUTH = "groundtruth"
LEDGER = LEDGER_TOPIC
VERSIONS = "newnormal.versions"

FROM_AGENTS = (RAW_JSON, RAW_TELEGRAF, RAW_COLLECTD, RAW_AGENTS, LOGS_JSON, LOGS_RSYSLOG, LOGS_AGENTS)
"""Topics that agents write."""

FROM_OPERATORS = (RULES, LABELS, TOPOLOGY, ACKNOWLEDGEMENTS, SILENCES, CHANGES)
"""Topics that operators write: two by `newnormal rule` and `newnormal label` for the detectors; two by `newnormal
topology` and `newnormal incidents` for the incidents job. `SILENCES` is the same kind of topic, few messages that are
kept, but the driver writes it (`pipelines.runtime.silence`); `CHANGES` the gateway writes, too."""

FROM_JOBS = (
    *(TELEMETRY, FEATURES, FEATURES_LATE, LOGS, LOGS_LATE, LOG_FEATURES),
    *(NOVELTIES, STATE, NOVELTIES_LATE, LOG_FEATURES_LATE, NEWS, LOG_NEWS, INCIDENTS),
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

KEPT = ("retention.ms", "segment.ms")
"""The entries of a topic's configuration that say how long messages are kept."""

_DAY_MS = 86_400_000
_WEEK_MS = 7 * _DAY_MS
_HOUR_MS = 3_600_000
_CHANGES_MS = 90 * _DAY_MS
"""How long changes are kept at least: each has an id of its own, so compaction alone would keep all of them."""


def config(name: str, retention_ms: int = _WEEK_MS) -> dict[str, str]:
    """The configuration with which a topic is created.

    Kafka deletes whole segments, and none that is still written: their length is a part of the retention, so that
    messages are kept for little longer than it.

    Args:
        name: One of `NAMES` or `VERSIONS`, without the namespace.
        retention_ms: How long Kafka keeps messages, milliseconds. Rules, labels and versions, and the last
            state of each series, are kept for ever, changes for 90 days at least.
    """
    stamped = {"message.timestamp.type": "LogAppendTime"}  # the writer's clock must not decide the watermark
    if name == VERSIONS:
        return {"cleanup.policy": "compact"}
    if name == STATE:  # a segment that is written is not compacted, so it is short
        return {"cleanup.policy": "compact", "segment.ms": str(_HOUR_MS)}
    if name == CHANGES:
        return {"cleanup.policy": "compact,delete", "retention.ms": str(max(retention_ms, _CHANGES_MS)), **stamped}
    if name in FROM_OPERATORS:  # compaction keeps the last message of each key; heartbeats, too, leave only the last
        return {"cleanup.policy": "compact", **stamped}
    segment_ms = min(max(retention_ms // 7, 1_000), _DAY_MS)
    kept = {
        "retention.ms": str(retention_ms), "segment.ms": str(segment_ms), "max.message.bytes": "16000000"
    }  # fmt: skip
    return kept | stamped if name in FROM_AGENTS else kept


def configs() -> dict[str, dict[str, str]]:
    """The configuration of every topic, by its name without the namespace."""
    return {name: config(name) for name in NAMES}
