"""Changes of the site as annotations, which Grafana draws into all plots over time of a dashboard.

Grafana asks for them by a query in Lucene's syntax, in which a machine can be looked up by its name, but not the globs
that match it. So there are two annotations, each of which a reader can switch off: changes of single machines and those
of the whole site follow the chosen machine and workload; those that name machines by globs follow the workload only.
"""

from __future__ import annotations

from typing import Any

from dashboards.grafana.identity import uid
from dashboards.grafana.targets import VARIABLES
from dashboards.panels import Dashboard, Site

_GLOB = "host.name:/.*[*?].*/"
_SITE = "(*:* AND NOT _exists_:host.name)"
_COLOURS = ("#5470c6", "#9a9fa8")


def changes(dashboard: Dashboard, site: Site) -> list[dict[str, Any]]:
    """The annotations of a dashboard.

    Args:
        dashboard: The dashboard, whose variables filter them.
        site: The installation.
    """
    fields = [control.field for control in dashboard.controls]
    machine, workload = (
        [f"host.name:${VARIABLES[field]}"] if field in fields else [] for field in ("host.name", "k8s.workload.name")
    )
    chosen = " AND ".join([*machine, *workload]) or "*"
    queries = {
        "Changes": f"NOT {_GLOB} AND (({chosen}) OR {_SITE})",
        "Changes of several machines": " AND ".join([_GLOB, *workload]),
    }
    source = {"type": "elasticsearch", "uid": uid(site, "data source", "changes")}
    return [
        {
            "name": name, "datasource": source, "enable": True, "hide": False, "iconColor": colour, "query": query,
            "timeField": "@timestamp", "textField": "message",
        }
        for (name, query), colour in zip(queries.items(), _COLOURS, strict=True)
    ]  # fmt: skip
