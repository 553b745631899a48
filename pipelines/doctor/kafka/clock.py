"""Checks that this machine's clock agrees with those of Kafka and Elasticsearch."""

from __future__ import annotations

from typing import Any

from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec  # type: ignore[attr-defined]

from engine.address import kafka_options
from pipelines.contracts import topics
from pipelines.contracts.quantities.words import duration
from pipelines.doctor.context import Context
from pipelines.doctor.finding import Finding, Severity, subject

_kind = subject("Environment")
CLOCK_OFF = _kind(
    "CLOCK_OFF",
    Severity.AT_RISK,
    "the clock of this machine differs from that of Kafka or Elasticsearch",
    "synchronize the clocks of all machines (NTP): event times are compared with arrival times at Kafka",
)
MOST_MS = 5_000
"""The greatest difference of clocks that is no finding, milliseconds."""
_SECONDS = 10.0


def kafka_clock(context: Context) -> list[Finding]:
    """Finds that messages have arrived at Kafka in the future of this machine.

    Kafka does not tell its time, but stamps messages in the agents' topics with it. So a clock of this machine that
    runs ahead is not found here; `elasticsearch_clock` finds both.
    """
    quiet: dict[str, Any] = {"log_level": 0, "error_cb": lambda _error: None}
    client = AdminClient({**kafka_options(context.bootstrap), **quiet})
    names = {context.settings.reads(name) for name in topics.FROM_AGENTS}
    known = client.list_topics(timeout=_SECONDS).topics
    newest: Any = OffsetSpec.max_timestamp()  # type: ignore[no-untyped-call]
    asked = {TopicPartition(name, p): newest for name in sorted(names & known.keys()) for p in known[name].partitions}
    answers = client.list_offsets(asked, request_timeout=_SECONDS) if asked else {}
    arrived = max((future.result(_SECONDS).timestamp for future in answers.values()), default=0)
    if (ahead := arrived - context.clock()) <= MOST_MS:
        return []
    what = f"the newest message arrived {duration(ahead)} in the future: the clock of this machine is behind"
    return [Finding(CLOCK_OFF, what, f"Kafka at {context.bootstrap}")]


def elasticsearch_clock(context: Context) -> list[Finding]:
    """Finds that a node's time lies before or after the time in which it was asked."""
    before = context.clock()
    nodes = context.elasticsearch.nodes.stats(metric="os")["nodes"].values()
    after = context.clock()
    findings = []
    for node in nodes:
        time = int(node["os"]["timestamp"])
        off = time - after if time > after else min(0, time - before)
        if abs(off) > MOST_MS:
            what = f"it says a time {duration(abs(off))} {'after' if off > 0 else 'before'} that of this machine"
            findings.append(Finding(CLOCK_OFF, what, f"Elasticsearch node {node['name']}"))
    return findings
