"""All dashboards, in the order in which they are listed."""

from __future__ import annotations

from dashboards.panels.incidents import INCIDENTS
from dashboards.panels.operator import LOGS_PAGE, MACHINE_PAGE, OVERVIEW, SERIES_PAGE
from dashboards.panels.panel import Dashboard
from dashboards.panels.upkeep import HEALTH, VERSIONS

DASHBOARDS: tuple[Dashboard, ...] = (OVERVIEW, INCIDENTS, MACHINE_PAGE, SERIES_PAGE, LOGS_PAGE, HEALTH, VERSIONS)
