"""A week of a simulated Kubernetes through the detector and the incidents job, beside what happened there.

Both jobs run with their state, codecs and watermarks as on Spark, but without Spark and Kafka, so that a week takes
minutes. What Kubernetes says goes through the gateway's reader of its events, or the gauges of kube-state-metrics
through the job `places`; where pods run is said as it is inferred.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import polars as pl
import pyarrow as pa

from engine.columns.partitioning import slots
from engine.formats import columnar
from engine.formats.heartbeat import HEARTBEAT
from engine.runtime.intake import KAFKA
from engine.runtime.shard import to_table
from engine.spec.errors import NewnormalError
from engine.testing.driven import Driven
from pipelines.contracts import topics
from pipelines.contracts.records import Features, Incident, Placement
from pipelines.contracts.settings import Settings, load
from pipelines.gateway.change_formats import changes_of
from pipelines.jobs.detectors.job import detector
from pipelines.jobs.incidents.job import grouper
from tests.benchmarks.kubernetes.gauges import Gauges
from tests.benchmarks.kubernetes.site import MINUTE, Event, KubernetesSite
from tests.benchmarks.kubernetes.values import Values
from tests.benchmarks.queries import say

CHUNK = 30
"""Windows in a micro-batch."""
_GRACE = 5 * MINUTE
_PARTITIONS = 4
Incidents = Mapping[str, Incident]


class _Log:
    """The messages of one micro-batch.

    Args:
        settings: The pipeline's.
        number: Number of the micro-batch.
        now: When they arrive, epoch milliseconds.
    """

    def __init__(self, settings: Settings, number: int, now: int) -> None:
        self._settings, self._first, self._now = settings, number * 1_000_000, now
        self._rows: list[dict[str, Any]] = []

    def add(self, topic: str, partition: int, value: bytes) -> None:
        """One message; ``topic`` with its namespace."""
        self._rows.append(
            {"value": value, "topic": topic, "partition": partition, "offset": self._first + len(self._rows),
             "arrived": self._now}
        )  # fmt: skip

    def features(self, frame: pl.DataFrame) -> None:
        """Features, with their watermark, in each partition."""
        name, where = self._settings.reads(topics.FEATURES), slots(frame["entity"], _PARTITIONS)
        for partition in range(_PARTITIONS):
            own = frame.filter(pl.Series(where == partition))
            self.add(name, partition, columnar.encode(to_table(own, Features), self._now - 1))

    def messages(self, topic: str, values: Iterable[bytes]) -> None:
        """Messages of operators, and a heartbeat in each partition; ``topic`` without its namespace."""
        name = self._settings.reads(topic)
        for value in values:
            self.add(name, 0, value)
        for partition in range(_PARTITIONS):
            self.add(name, partition, HEARTBEAT)

    def tables(self, reads: Iterable[str]) -> list[pa.Table]:
        """Those of the topics that a job reads."""
        names = set(reads)
        return [pa.Table.from_pylist([row for row in self._rows if row["topic"] in names], schema=KAFKA)]


def run(days: int = 7, seed: int = 1, gauges: bool = False) -> dict[str, Any]:
    """The figures of a week; prints them while it goes.

    Args:
        days: How many there are.
        seed: Of the site.
        gauges: Whether the site sends gauges of kube-state-metrics, and no events.
    """
    site = KubernetesSite(seed=seed, days=days)
    began = time.perf_counter()
    found, rows = incidents_of(site, gauges)
    took = time.perf_counter() - began
    return {"pods": len(site.pods), "windows": rows, "seconds": round(took)} | figures(site, found)


def incidents_of(site: KubernetesSite, gauges: bool = False) -> tuple[Incidents, int]:
    """The last document of each incident, by its id; and the number of windows."""
    settings = load(**{"window.size": "60s", "kafka.partitions": _PARTITIONS})
    judging, grouping = Driven(detector(settings), 2), Driven(grouper(settings), 1)
    asked = Gauges(settings, site) if gauges else None
    news, written = settings.writes(topics.NEWS), settings.writes(topics.INCIDENTS)
    last: dict[str, Incident] = {}
    rows, before = 0, 0
    for number, (now, frame) in enumerate(Values(site).chunks(CHUNK)):
        rows += frame.height
        log = _Log(settings, number, now)
        log.features(frame)
        for topic in (topics.RULES, topics.LABELS, topics.ACKNOWLEDGEMENTS, topics.SILENCES):
            log.messages(topic, ())
        log.messages(topics.CHANGES, asked.changes(before, now) if asked else _changes(site, before, now))
        log.messages(topics.TOPOLOGY, _placed(site, before, now))
        judging.kafka(log.tables(judging.job.topics))
        for _, message in judging.messages:
            if message.topic == news:
                log.add(news, message.partition, message.value)
        judging.messages.clear()
        judging.written.clear()
        logs = settings.reads(topics.LOG_NEWS)
        for partition in range(_PARTITIONS):
            log.add(logs, partition, HEARTBEAT)
        grouping.kafka(log.tables(grouping.job.topics))
        for _, message in grouping.messages:
            if message.topic == written:
                incident = Incident.from_json(message.value)
                last[incident.id] = incident
        grouping.messages.clear()
        grouping.written.clear()
        before = now
        if number % 48 == 47:
            say(f"{(number + 1) // 48} days, {rows:,} windows, {len(last)} incidents")
    return last, rows


def _changes(site: KubernetesSite, before: int, now: int) -> list[bytes]:
    found = []
    for at, event in site.said:
        if before <= at < now:
            found += [each.to_json() for each in changes_of(event, at) if not isinstance(each, NewnormalError)]
    return found


def _placed(site: KubernetesSite, before: int, now: int) -> list[bytes]:
    return [
        Placement(entity=pod.name, parent=pod.node, time=pod.start).to_json()
        for pod in site.pods
        if before <= pod.start < now
    ]


def figures(site: KubernetesSite, found: Incidents) -> dict[str, Any]:
    """What incidents hold, name and miss."""
    told = [each for each in found.values() if each.status != "merged"]
    held = [_held(each, site.events) for each in told]
    seen = {event for events in held for event in events}
    ended = {pod.name: pod.end for pod in site.pods if pod.planned and pod.end < site.end}
    planned = [each.message for each, events in zip(told, held, strict=True) if not events and _only_ends(each, ended)]
    away = {name: since for name, since, _, was_planned in site.silent if was_planned}
    drained = sum(
        not events and all(m.entity in away and abs(m.since - away[m.entity]) <= _GRACE for m in each.machines)
        for each, events in zip(told, held, strict=True)
    )
    named = [(event, each) for each, events in zip(told, held, strict=True) for event in events if len(events) == 1]
    by_kind = {}
    for kind in sorted({event.kind for event in site.events}):
        own = [event for event in site.events if event.kind == kind]
        by_kind[kind] = {
            "events": len(own),
            "found": sum(event in seen for event in own),
            "incidents": sum(event in events for event in own for events in held),
            "named": _share([_names(event, each) for event, each in named if event.kind == kind]),
        }
    bad = [(event, each) for event, each in named if event.change]
    return {
        "events": len(site.events),
        "found": len(seen),
        "incidents": len(told),
        "hold_exactly_one": _share([len(events) == 1 for events in held]),
        "hold_none": sum(not events for events in held),
        "hold_several": sum(len(events) > 1 for events in held),
        "name_node_or_workload": _share([_names(event, each) for event, each in named if event.name]),
        "name_the_change": _share([any(c.id == e.change for c in i.changes) for e, i in bad]),
        "of_planned_ends": len(planned),
        "of_nodes_that_restart_after_a_drain": drained,
        "by_kind": by_kind,
        "examples_of_none": [each.message for each, events in zip(told, held, strict=True) if not events][:40],
    }


def _held(incident: Incident, events: Sequence[Event]) -> list[Event]:
    """The events during which a novelty began on one of their machines."""
    machines = {each.entity: each.since for each in incident.machines}
    held = []
    for event in events:
        since = [machines[name] for name in (*event.machines, *event.beside) or machines if name in machines]
        if any(event.start - MINUTE <= at <= event.end + _GRACE for at in since):
            held.append(event)
    return held


def _only_ends(incident: Incident, ended: Mapping[str, int]) -> bool:
    """Whether an incident is of nothing but pods that ended as planned."""
    return all(each.entity in ended and abs(each.since - ended[each.entity]) <= _GRACE for each in incident.machines)


def _names(event: Event, incident: Incident) -> bool:
    """Whether the title, or the first candidate, names the node or the workload of an event."""
    first = incident.candidates[0].entity if incident.candidates else ""
    return event.name in incident.message or event.name == first


def _share(flags: Sequence[bool]) -> float | None:
    return round(sum(flags) / len(flags), 3) if flags else None
