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
TRACES_AGENTS = "traces.agents"
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
PLACES = "places"
CALLS = "calls"
DEADLETTER = "deadletter"
GROUNDTRUTH = "groundtruth"
LEDGER = LEDGER_TOPIC
VERSIONS = "newnormal.versions"

FROM_AGENTS = (
    *(RAW_JSON, RAW_TELEGRAF, RAW_COLLECTD, RAW_AGENTS, LOGS_JSON, LOGS_RSYSLOG, LOGS_AGENTS, TRACES_AGENTS),
)
"""Topics that agents write."""

FROM_OPERATORS = (RULES, LABELS, TOPOLOGY, ACKNOWLEDGEMENTS, SILENCES, CHANGES)
"""Topics that operators write: two by `newnormal rule` and `newnormal label` for the detectors; two by `newnormal
topology` and `newnormal incidents` for the incidents job. `SILENCES` is the same kind of topic, few messages that are
kept, but the driver writes it (`pipelines.runtime.silence`); `CHANGES` the gateway writes, too."""

FROM_JOBS = (
    *(TELEMETRY, FEATURES, FEATURES_LATE, LOGS, LOGS_LATE, LOG_FEATURES),
    *(NOVELTIES, STATE, NOVELTIES_LATE, LOG_FEATURES_LATE, NEWS, LOG_NEWS, INCIDENTS, CALLS, PLACES),
)
"""Topics that jobs write."""

ABOUT_THE_SITE = (*FROM_OPERATORS, PLACES)
"""Topics of few messages, of which the last ones on each subject count; jobs read them from their beginning."""

SHARED = (DEADLETTER, GROUNDTRUTH, LEDGER)
"""Topics that all jobs write (dead letters, ledger), and the ground truth that the simulator writes."""

OF_ALL_VERSIONS = frozenset({*FROM_AGENTS, *ABOUT_THE_SITE, CALLS, GROUNDTRUTH, LEDGER, VERSIONS})
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
_CHANGES_MS, _PLACES_MS = 90 * _DAY_MS, 14 * _DAY_MS
"""How long changes and inferred places are kept at least: each change and each pod has a name of its own, so compaction
alone would keep all of them. A place that stands is written again every day."""


def config(name: str, retention_ms: int = _WEEK_MS) -> dict[str, str]:
    """The configuration with which a topic is created.

    Kafka deletes whole segments, and none that is still written: their length is a part of the retention, so that
    messages are kept for little longer than it.

    Args:
        name: One of `NAMES` or `VERSIONS`, without the namespace.
        retention_ms: How long Kafka keeps messages, milliseconds. Rules, labels and versions, and the last
            state of each series that is not forgotten, are kept for ever, changes for 90 days and inferred places for
            14 days at least.
    """
    stamped = {"message.timestamp.type": "LogAppendTime"}  # the writer's clock must not decide the watermark
    if name == VERSIONS:
        return {"cleanup.policy": "compact"}
    if name == STATE:  # a segment that is written is not compacted, so it is short
        off = str(_WEEK_MS)  # a view that was off for so long still reads what was deleted
        return {"cleanup.policy": "compact", "segment.ms": str(_HOUR_MS), "delete.retention.ms": off}
    if name in (CHANGES, PLACES):
        least = _CHANGES_MS if name == CHANGES else _PLACES_MS
        return {"cleanup.policy": "compact,delete", "retention.ms": str(max(retention_ms, least)), **stamped}
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
