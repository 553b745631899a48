"""Conditions, measures and columns that several dashboards share."""

from __future__ import annotations

from dashboards.panels.panel import Control
from dashboards.panels.query import Among, Measure
from pipelines.contracts.records.novelty import ALARM_KINDS, JOINED, NEWS_KINDS

ALARMS = Among("kind", ALARM_KINDS)
NEWS = Among("kind", NEWS_KINDS)
NO_JOINED = Among("metric", (JOINED,), no=True)
SILENT = Among("kind", ("absence",))
LOGS = Among("metric", ("logs",))

COUNT = Measure("count", title="documents")
WORST = Measure("max", "record_score", "highest score", "score")
LAST = Measure("max", "@timestamp", "last window", "time")
MACHINES = Measure("unique", "host.name", "machines")
SERIES = Measure("unique", "metric", "metrics")

MACHINE = Control("host.name", "Machine")
WORKLOAD = Control("k8s.workload.name", "Workload", optional=True)
METRIC = Control("metric", "Metric")
KIND = Control("kind", "Kind")

NEWEST = ("@timestamp", "kind", "host.name", "metric", "record_score", "message")
