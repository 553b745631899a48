"""The dashboard of changes: what was done at the site, and when."""

from __future__ import annotations

from dashboards.panels.panel import Control, Dashboard, Panel
from dashboards.panels.query import Documents, Measure, Over, Summary, Top

_COUNT = Measure("count", title="changes")
_LAST = Measure("max", "@timestamp", "last", "time")

CHANGES = Dashboard(
    "changes",
    "Changes",
    "What was done at the site, and when?",
    (
        Panel(
            "kinds", "Changes over time", "How many deployments, new configurations, restarts, feature flags and "
            "others began when.",
            Summary((_COUNT,), (Over(), Top("event.action", 6, title="kind"))), "bars", 48, data="changes",
        ),
        Panel(
            "list", "Changes in words", "The newest changes: what was done on which machines (globs; empty: on the "
            "whole site), by whom.",
            Documents(("@timestamp", "event.end", "event.action", "host.name", "message", "user.name"), ()),
            "documents", 48, 18, "changes",
        ),
        Panel(
            "machines", "Most often changed", "The machines, or globs of machines, with the most changes.",
            Summary((_COUNT, _LAST), (Top("host.name", 20, title="machines"),)), "table", 24, data="changes",
        ),
        Panel(
            "sources", "Reported by", "What reported most changes: programs of a build, Kubernetes, people.",
            Summary((_COUNT, _LAST), (Top("event.provider", 20, title="source"),)), "table", 24, data="changes",
        ),
    ),
    (Control("event.action", "Kind of change"),),
    "now-24h",
)  # fmt: skip
