"""The dashboard of incidents: what is open, how bad it is, where it may have begun."""

from __future__ import annotations

from dashboards.panels.common import MACHINE, WORKLOAD
from dashboards.panels.panel import Control, Dashboard, Panel
from dashboards.panels.query import Among, Documents, Measure, Over, Summary, Top

_OPEN = Among("incident.state", ("open", "acknowledged", "reopened"))
_WAITING = Among("incident.state", ("open", "reopened"))
_OWN = Among("incident.state", ("merged",), no=True)
_COUNT = Measure("count", title="incidents")
_WORST = Measure("max", "event.risk_score", "highest severity", "score")
_LAST = Measure("max", "@timestamp", "last reported", "time")

INCIDENTS = Dashboard(
    "incidents",
    "Incidents",
    "What is going on, how bad is it, where did it begin?",
    (
        Panel(
            "open", "Open incidents", "Incidents that are not resolved, of those that were reported in the time range.",
            Summary((_COUNT,), where=(_OPEN,)), "number", 12, 6, "incidents",
        ),
        Panel(
            "waiting", "Not acknowledged", "Open incidents that nobody has acknowledged.",
            Summary((_COUNT,), where=(_WAITING,)), "number", 12, 6, "incidents",
        ),
        Panel(
            "worst", "Highest severity", "The highest severity of an open incident, of 100.",
            Summary((_WORST,), where=(_OPEN,)), "number", 12, 6, "incidents",
        ),
        Panel(
            "all", "Incidents", "All incidents that were reported in the time range; one that turned out to be a part "
            "of another counts with that one.",
            Summary((_COUNT,), where=(_OWN,)), "number", 12, 6, "incidents",
        ),
        Panel(
            "list", "Open incidents in words", "The newest open incidents: what happened, since when, how much is "
            "affected.",
            Documents(
                (
                    "@timestamp", "severity", "event.risk_score", "incident.state", "event.start", "machine_count",
                    "series_count", "message",
                ),
                (_OPEN,),
            ),
            "documents", 48, 16, "incidents",
        ),
        Panel(
            "open-machines", "Machines of open incidents", "The machines of the open incidents with what happened in "
            "words; a click on a machine opens it for this time range.",
            Summary(
                (
                    _WORST, Measure("newest", "severity", "severity", "text"),
                    Measure("newest", "incident.state", "state", "text"),
                    Measure("newest", "message", "what", "text"), _LAST,
                ),
                (Top("host.name", 50, title="machine"),), (_OPEN,),
            ),
            "table", 48, 14, "incidents", drill="machine",
        ),
        Panel(
            "severities", "Incidents by severity", "How many incidents were first reported when, by severity.",
            Summary((_COUNT,), (Over(), Top("severity", 4, title="severity")), (_OWN,)), "bars", 24, data="incidents",
        ),
        Panel(
            "machines", "Affected machines", "The machines that are in most incidents; a click opens the machine.",
            Summary((_COUNT, _WORST, _LAST), (Top("host.name", 20, title="machine"),), (_OWN,)), "table", 24,
            data="incidents", drill="machine",
        ),
        Panel(
            "workloads", "Affected workloads", "The workloads with replicas in most incidents, such as deployments of "
            "pods.",
            Summary((_COUNT, _WORST, _LAST), (Top("k8s.workload.name", 20, title="workload"),), (_OWN,)), "table", 48,
            8, "incidents",
        ),
        Panel(
            "candidates", "Where incidents may have begun", "The machines that are most often named as a first cause.",
            Summary((_COUNT, _LAST), (Top("candidates.entity", 20, title="machine"),), (_OWN,)), "table", 24,
            data="incidents",
        ),
        Panel(
            "metrics", "Affected metrics", "The metrics that are in most incidents; a click opens *Series*, where "
            "a machine can be chosen.",
            Summary((_COUNT, _WORST), (Top("metric", 20, title="metric"),), (_OWN,)), "table", 24,
            data="incidents", drill="series",
        ),
        Panel(
            "past", "Resolved incidents", "The newest resolved incidents, and what operators remarked.",
            Documents(
                (
                    "@timestamp", "severity", "event.start", "event.end", "reopenings", "acknowledged_by", "note",
                    "message",
                ),
                (Among("incident.state", ("resolved",)),),
            ),
            "documents", 48, 14, "incidents",
        ),
    ),
    (Control("severity", "Severity"), Control("incident.state", "State"), MACHINE, WORKLOAD),
    "now-24h",
)  # fmt: skip
