"""All dashboards, in the order in which they are listed."""

from __future__ import annotations

from dashboards.panels.changes import CHANGES
from dashboards.panels.incidents import INCIDENTS
from dashboards.panels.jobs import JOBS
from dashboards.panels.metrics import MetricsDashboard
from dashboards.panels.operator import LOGS_PAGE, MACHINE_PAGE, OVERVIEW, SERIES_PAGE
from dashboards.panels.panel import Dashboard
from dashboards.panels.scores import SCORES
from dashboards.panels.upkeep import HEALTH, VERSIONS

DASHBOARDS: tuple[Dashboard, ...] = (
    *(OVERVIEW, INCIDENTS, MACHINE_PAGE, SERIES_PAGE, LOGS_PAGE),
    *(CHANGES, HEALTH, VERSIONS),
)

METRICS_DASHBOARDS: tuple[MetricsDashboard, ...] = (JOBS, SCORES)
"""Those whose data come from Prometheus, which Grafana alone can show."""


def same_fields(one: Dashboard, other: Dashboard) -> bool:
    """Whether what a reader has chosen on one dashboard can be chosen on another: their documents are alike.

    A severity that was chosen among incidents would leave the dashboards of novelties empty, and so would a machine
    that of changes, which name machines by globs, too.
    """
    mine, other_data = (dashboard.panels[0].data for dashboard in (one, other))
    return mine == other_data or not {mine, other_data} & {"incidents", "changes"}
