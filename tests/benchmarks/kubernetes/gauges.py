"""What kube-state-metrics says of the simulated Kubernetes, and the changes that the job `places` makes of it."""

from __future__ import annotations

import pyarrow as pa

from engine.formats.heartbeat import HEARTBEAT
from engine.runtime.intake import KAFKA
from engine.testing.driven import Driven
from pipelines.contracts import topics
from pipelines.contracts.settings import Settings
from pipelines.jobs.places.job import places
from tests.benchmarks.kubernetes.site import BEGIN, GRACE, KubernetesSite

SCRAPE, FIRST = 30_000, 11_000
"""How often the gauges are asked, and how long after a minute, milliseconds: what is deleted in between is not seen."""


class Gauges:
    """The changes of a site that sends the gauges of kube-state-metrics, and no events of Kubernetes.

    Args:
        settings: The pipeline's.
        site: What happens.
    """

    def __init__(self, settings: Settings, site: KubernetesSite) -> None:
        self._settings, self._site, self._offset = settings, site, 0
        self._job = Driven(places(settings), 1)
        self._deletions, self._cordons = sorted(site.deletions, key=lambda each: each[1]), site.cordons

    def changes(self, before: int, now: int) -> list[bytes]:
        """What the job has written when it has read all samples between two instants."""
        begin = max(before, BEGIN)
        first = begin - begin % SCRAPE + FIRST
        rows = [self._row(topics.RAW_AGENTS, self._scraped(at), at) for at in range(first, now, SCRAPE)]
        for partition in range(self._settings.kafka.partitions):
            for topic in (topics.RAW_AGENTS, topics.TRACES_AGENTS):
                rows.append(self._row(topic, HEARTBEAT, now, partition))
        tables = [pa.Table.from_pylist([row for row in rows if row["topic"] == t], KAFKA) for t in self._job.job.topics]
        self._job.kafka([table for table in tables if table.num_rows])
        topic = self._settings.writes(topics.CHANGES)
        written = [m.value for _, m in self._job.messages if m.topic == topic and m.value is not None]
        self._job.messages.clear()
        self._job.written.clear()
        return written

    def _row(self, topic: str, value: bytes, at: int, partition: int = 0) -> dict[str, object]:
        self._offset += 1
        name = self._settings.reads(topic)
        return {"topic": name, "partition": partition, "offset": self._offset, "arrived": at, "value": value}

    def _scraped(self, at: int) -> bytes:
        lines = []
        for node in self._site.node_names:
            is_on = any(name == node and begin <= at < end for name, begin, end in self._cordons)
            lines.append(f'kube_node_spec_unschedulable{{node="{node}"}} {int(is_on)} {at}')
        for name, begin, end in self._deletions:
            if begin <= at < end:
                space, _, pod = name.partition("/")
                until = (begin + GRACE) // 1000
                lines.append(f'kube_pod_deletion_timestamp{{namespace="{space}",pod="{pod}"}} {until} {at}')
        return "\n".join(lines).encode()
