"""Options of the panel types of Grafana that the dashboards use, with all that their definitions require."""

from __future__ import annotations

from typing import Any

Model = dict[str, Any]


def stat() -> Model:
    """A number: the newest one."""
    reduced = {"calcs": ["lastNotNull"], "fields": "", "values": False}
    look = {"orientation": "auto", "colorMode": "value", "graphMode": "none", "justifyMode": "auto", "textMode": "auto"}
    return {"reduceOptions": reduced, **look}


def time_series() -> Model:
    """Lines or bars, with their names below."""
    return {"legend": _legend(shown=True), "tooltip": {"mode": "multi", "sort": "desc"}}


def status_history() -> Model:
    """Strips of cells, whose colours say everything."""
    tooltip = {"mode": "single", "sort": "none"}
    return {"showValue": "never", "rowHeight": 0.9, "legend": _legend(shown=False), "tooltip": tooltip}


def table() -> Model:
    """A table with titles."""
    return {"showHeader": True}


def _legend(*, shown: bool) -> Model:
    return {"calcs": [], "displayMode": "list", "placement": "bottom", "showLegend": shown}
