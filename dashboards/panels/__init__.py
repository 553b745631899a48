"""The panels of the dashboards: what they ask, how they look, what they tell. It knows no Kibana and no Grafana."""

from dashboards.panels.catalogue import DASHBOARDS, METRICS_DASHBOARDS
from dashboards.panels.panel import Dashboard, Panel, placed
from dashboards.panels.site import Site

__all__ = ["DASHBOARDS", "METRICS_DASHBOARDS", "Dashboard", "Panel", "Site", "placed"]
