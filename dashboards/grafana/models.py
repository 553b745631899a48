"""The JSON models of dashboards and data sources for Grafana."""

from __future__ import annotations

from typing import Any

from dashboards.grafana import options
from dashboards.grafana.annotations import changes
from dashboards.grafana.identity import uid
from dashboards.grafana.metrics import SEVERITY_STEPS, metrics_panels, metrics_variables
from dashboards.grafana.targets import VARIABLES, column_name, measures_of, target
from dashboards.panels import DASHBOARDS, METRICS_DASHBOARDS, Dashboard, Panel, Site, placed
from dashboards.panels.metrics import MetricsDashboard
from dashboards.panels.panel import Control
from dashboards.panels.query import Documents, Measure, Top
from dashboards.panels.site import ALL_DATA, Data

Model = dict[str, Any]

_TYPES = {
    "number": "stat", "lines": "timeseries", "bars": "timeseries", "heat map": "status-history", "table": "table",
    "documents": "table",
}  # fmt: skip
_OPTIONS = {
    "number": options.stat, "lines": options.time_series, "bars": options.time_series,
    "heat map": options.status_history, "table": options.table, "documents": options.table,
}  # fmt: skip


def data_sources(site: Site, url: str) -> list[Model]:
    """The Elasticsearch data sources; `url` is the server's address as Grafana reaches it."""
    return [
        {
            "uid": uid(site, "data source", data),
            "name": site.title(data),
            "type": "elasticsearch",
            "access": "proxy",
            "url": url,
            "jsonData": {
                "index": site.indices(data),
                "timeField": site.time_field(data),
                "maxConcurrentShardRequests": 5,
                "logMessageField": "message",
            },
        }
        for data in ALL_DATA
    ]


def dashboards(site: Site) -> list[Model]:
    """All dashboards."""
    return [*(_dashboard(each, site) for each in DASHBOARDS), *(_metrics(each, site) for each in METRICS_DASHBOARDS)]


def _dashboard(dashboard: Dashboard, site: Site) -> Model:
    panels = []
    for number, (panel, place) in enumerate(placed(dashboard), 1):
        where = {"x": place.x // 2, "y": place.y // 2, "w": place.width // 2, "h": place.height // 2}
        panels.append({"id": number, "gridPos": where, **_panel(dashboard, panel, site)})
    data = dashboard.panels[0].data
    variables = [_variable(each, data, site) for each in dashboard.controls]
    page = _page(site, dashboard.id, dashboard.title, dashboard.purpose, dashboard.since, variables, panels)
    return page if data == "changes" else page | {"annotations": {"list": changes(dashboard, site)}}


def _metrics(dashboard: MetricsDashboard, site: Site) -> Model:
    variables, panels = metrics_variables(dashboard), metrics_panels(dashboard)
    return _page(site, dashboard.id, dashboard.title, dashboard.purpose, "now-6h", variables, panels)


def _page(
    site: Site, identity: str, title: str, purpose: str, since: str, variables: list[Model], panels: list[Model]
) -> Model:
    tag = f"newnormal {site.alias}"
    links = {"type": "dashboards", "title": "Newnormal", "tags": [tag], "asDropdown": False, "icon": "external link"}
    return {
        "uid": uid(site, identity),
        "title": f"[{site.alias}] {title}",
        "description": purpose,
        "tags": [tag],
        "schemaVersion": 39,
        "editable": True,
        "graphTooltip": 1,
        "refresh": "10s",
        "time": {"from": since, "to": "now"},
        "links": [{**links, "includeVars": True, "keepTime": True, "targetBlank": False, "tooltip": "", "url": ""}],
        "templating": {"list": variables},
        "annotations": {"list": []},
        "panels": panels,
    }


def _variable(control: Control, data: Data, site: Site) -> Model:
    field = control.field
    return {
        "name": VARIABLES[field],
        "label": control.title,
        "type": "query",
        "datasource": {"type": "elasticsearch", "uid": uid(site, "data source", data)},
        "query": f'{{"find": "terms", "field": "{field}", "size": 1000}}',
        "multi": True,
        "includeAll": True,
        "allValue": f"(* OR (*:* AND NOT _exists_:{field}))" if control.optional else "*",
        "current": {"text": ["All"], "value": ["$__all"]},
        "refresh": 2,
        "sort": 1,
        "hide": 0,
    }


def _panel(dashboard: Dashboard, panel: Panel, site: Site) -> Model:
    source = uid(site, "data source", panel.data)
    return {
        "type": _TYPES[panel.visual],
        "title": panel.title,
        "description": panel.help,
        "datasource": {"type": "elasticsearch", "uid": source},
        "targets": [target(dashboard, panel, site, source)],
        **({"interval": site.window} if panel.visual == "lines" else {}),  # a shorter bar would be a gap in the line
        "fieldConfig": {"defaults": _defaults(panel, site), "overrides": _overrides(panel, site)},
        "options": _OPTIONS[panel.visual](),
        "transformations": _transformations(panel),
    }


def _defaults(panel: Panel, site: Site) -> Model:
    measure = None if isinstance(panel.query, Documents) else panel.query.measures[0]
    defaults: Model = {"unit": _unit(measure)}
    if measure and measure.format == "score":
        defaults |= {"thresholds": {"mode": "absolute", "steps": SEVERITY_STEPS}, "decimals": 1, "min": 0, "max": 100}
        if panel.visual == "heat map":
            defaults["color"] = {"mode": "thresholds"}
    if panel.visual == "bars":
        defaults["custom"] = {"drawStyle": "bars", "fillOpacity": 80, "stacking": {"mode": "normal", "group": "A"}}
    elif panel.visual == "lines":
        defaults["custom"] = {"drawStyle": "line", "spanNulls": False}
    if panel.visual == "heat map" and panel.drill and not isinstance(panel.query, Documents):
        (split,) = (bucket for bucket in panel.query.buckets if isinstance(bucket, Top))
        defaults["links"] = [_link(panel, split.field, '${__field.labels["' + split.field + '"]}', site)]
    return defaults


def _overrides(panel: Panel, site: Site) -> list[Model]:
    if isinstance(panel.query, Documents) or panel.visual != "table":
        return []
    overrides = []
    measures = measures_of(panel)
    for measure in measures:
        named: list[Model] = [{"id": "displayName", "value": measure.title}, {"id": "unit", "value": _unit(measure)}]
        overrides.append({"matcher": {"id": "byName", "options": column_name(measure, measures)}, "properties": named})
    for bucket in panel.query.buckets:
        if isinstance(bucket, Top):
            named = [{"id": "displayName", "value": bucket.title or bucket.field}]
            if panel.drill:
                named.append({"id": "links", "value": [_link(panel, bucket.field, "${__value.raw}", site)]})
            overrides.append({"matcher": {"id": "byName", "options": bucket.field}, "properties": named})
    return overrides


def _link(panel: Panel, field: str, value: str, site: Site) -> Model:
    """A link to the dashboard of one machine or one series; what is chosen here stays chosen."""
    kept = "" if field == "host.name" else "&${machine:queryparam}"
    address = f"/d/{uid(site, panel.drill)}?var-{VARIABLES[field]}={value}{kept}&${{__url_time_range}}"
    return {"title": f"Open {panel.drill}", "url": address, "targetBlank": False}


def _transformations(panel: Panel) -> list[Model]:
    """A list of documents shows some of their fields, in the order of the panel."""
    if not isinstance(panel.query, Documents):
        return []
    columns = panel.query.columns
    include = {"id": "filterFieldsByName", "options": {"include": {"names": list(columns)}}}
    return [include, {"id": "organize", "options": {"indexByName": {name: at for at, name in enumerate(columns)}}}]


def _unit(measure: Measure | None) -> str:
    if measure is None:
        return "none"
    return "dateTimeAsIso" if measure.format == "time" else "none" if measure.format == "score" else "short"
