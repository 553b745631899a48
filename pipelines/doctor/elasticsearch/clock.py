"""Checks that this machine's clock agrees with that of Elasticsearch."""

from __future__ import annotations

from pipelines.contracts.explanations.quantities import duration
from pipelines.doctor.context import Context
from pipelines.doctor.finding import Finding
from pipelines.doctor.kafka.clock import CLOCK_OFF, MOST_MS


def elasticsearch_clock(context: Context) -> list[Finding]:
    """Finds that a node's time lies before or after the time in which it was asked."""
    before = context.clock()
    nodes = context.elasticsearch.nodes.stats(metric="os")["nodes"].values()
    after = context.clock()
    found = []
    for node in nodes:
        told = int(node["os"]["timestamp"])
        off = told - after if told > after else min(0, told - before)
        if abs(off) > MOST_MS:
            what = f"it says a time {duration(abs(off))} {'after' if off > 0 else 'before'} that of this machine"
            found.append(Finding(CLOCK_OFF, what, f"Elasticsearch node {node['name']}"))
    return found
