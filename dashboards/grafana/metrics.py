"""The panels of dashboards whose data come from Prometheus, and the variables at the top of these dashboards."""

from __future__ import annotations

from typing import Any

from dashboards.grafana import options
from dashboards.panels.metrics import Label, MetricsDashboard, MetricsPanel, Promql
from dashboards.panels.panel import placed
from dashboards.panels.severity_colours import BANDS

Model = dict[str, Any]

SOURCE = {"type": "prometheus", "uid": "${source}"}
SEVERITY_STEPS = [{"color": band.colour, "value": band.start or None} for band in BANDS]
"""The first colour holds for all scores below the second: Grafana wants it without a value."""
_TYPES = {"number": "stat", "lines": "timeseries", "heat map": "status-history"}
_OPTIONS = {"number": options.stat, "lines": options.time_series, "heat map": options.status_history}


def metrics_panels(dashboard: MetricsDashboard) -> list[Model]:
    """The panels of a dashboard with their places, numbered from 1."""
    models = []
    for number, (panel, place) in enumerate(placed(dashboard), 1):
        where = {"x": place.x // 2, "y": place.y // 2, "w": place.width // 2, "h": place.height // 2}
        models.append({"id": number, "gridPos": where, **_panel(panel)})
    return models


def metrics_variables(dashboard: MetricsDashboard) -> list[Model]:
    """The variable that chooses a Prometheus data source, and those of its labels."""
    source = {
        "name": "source", "label": "Prometheus", "type": "datasource", "query": "prometheus", "regex": "",
        "multi": False, "includeAll": False, "current": {}, "refresh": 1, "hide": 0,
    }  # fmt: skip
    return [source, *map(_label, dashboard.labels)]


def _label(label: Label) -> Model:
    return {
        "name": label.name, "label": label.title, "type": "query", "datasource": SOURCE,
        "query": f"label_values({label.metric}, {label.name})", "multi": True, "includeAll": True, "allValue": ".*",
        "current": {"text": ["All"], "value": ["$__all"]}, "refresh": 2, "sort": 1, "hide": 0,
    }  # fmt: skip


def _panel(panel: MetricsPanel) -> Model:
    targets = [_target(chr(ord("A") + place), query) for place, query in enumerate(panel.queries)]
    return {
        "type": _TYPES[panel.visual], "title": panel.title, "description": panel.help, "datasource": SOURCE,
        "targets": targets, "fieldConfig": {"defaults": _defaults(panel), "overrides": []},
        "options": _OPTIONS[panel.visual](), "transformations": [],
    }  # fmt: skip


def _defaults(panel: MetricsPanel) -> Model:
    is_score = panel.unit == "score"
    defaults: Model = {"unit": "none" if is_score else panel.unit}
    if panel.visual == "number":
        defaults["noValue"] = "none"
    if panel.visual == "lines":
        defaults |= {"custom": {"drawStyle": "line", "spanNulls": False}}
        defaults |= {} if panel.below_zero else {"min": 0}
    if is_score:
        defaults |= {"thresholds": {"mode": "absolute", "steps": SEVERITY_STEPS}, "decimals": 1, "min": 0, "max": 100}
    elif panel.warn is not None:
        steps = [{"color": "green", "value": None}, {"color": "orange", "value": panel.warn}]
        defaults["thresholds"] = {"mode": "absolute", "steps": steps}
    if "thresholds" in defaults and panel.visual != "lines":
        defaults["color"] = {"mode": "thresholds"}
    return defaults


def _target(name: str, query: Promql) -> Model:
    return {
        "refId": name, "datasource": SOURCE, "expr": query.expression, "legendFormat": query.legend or "__auto",
        "editorMode": "code", "range": True, "instant": False,
    }  # fmt: skip
