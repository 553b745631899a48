"""A panel as Kibana keeps it in a dashboard: Lens or a list of documents, both by value."""

from __future__ import annotations

import json
from typing import Any

from dashboards.kibana.columns import bucket_column, measure_column
from dashboards.kibana.identity import Identity
from dashboards.kibana.kql import kql
from dashboards.kibana.visualizations import type_of, visualization
from dashboards.panels.catalogue import DASHBOARDS, same_fields
from dashboards.panels.panel import Dashboard, Panel, Place
from dashboards.panels.query import Documents, Over, Summary, Top, Versions
from dashboards.panels.site import field_types

Reference = dict[str, str]
_LIST_INDEX = "kibanaSavedObjectMeta.searchSourceJSON.index"


def panel_object(
    dashboard: Dashboard, panel: Panel, place: Place, ids: Identity
) -> tuple[dict[str, Any], list[Reference]]:
    """One entry of a dashboard's panels, and the references that the dashboard holds for it."""
    me = ids.of("panel", dashboard.id, panel.id)
    view = {"type": "index-pattern", "id": ids.of("data view", panel.data)}
    if isinstance(panel.query, Documents):
        kind, attributes, inner = "search", _list(panel, panel.query, view), {**view, "name": _LIST_INDEX}
    else:
        kind, attributes, inner = "lens", *_lens(dashboard, panel, panel.query, view, ids)
    drills, targets = _drills(me, dashboard, panel, ids)
    config = {"attributes": attributes, "description": panel.help, "enhancements": drills}
    where = {"x": place.x, "y": place.y, "w": place.width, "h": place.height, "i": me}
    entry = {"type": kind, "title": panel.title, "panelIndex": me, "gridData": where, "embeddableConfig": config}
    return entry, [{**inner, "name": f"{me}:{inner['name']}"}, *targets]


def _lens(
    dashboard: Dashboard, panel: Panel, query: Summary, view: Reference, ids: Identity
) -> tuple[dict[str, Any], Reference]:
    layer = ids.of("layer", dashboard.id, panel.id)
    types = dict(field_types(panel.data))
    measures = {
        ids.of("measure", dashboard.id, panel.id, number): measure_column(measure, types)
        for number, measure in enumerate(query.measures)
    }
    order, buckets = list(measures), {}
    for number, bucket in enumerate(query.buckets):
        shown = ids.site.groups(bucket.title) if isinstance(bucket, Versions) else bucket
        by = order[shown.by] if isinstance(shown, Top) and shown.by is not None else None
        buckets[ids.of("bucket", dashboard.id, panel.id, number)] = bucket_column(shown, types, by, ids.site.window)
    outermost = [id for id, bucket in zip(buckets, query.buckets, strict=True) if not isinstance(bucket, Over)]
    reference = {**view, "name": f"indexpattern-datasource-layer-{layer}"}
    form = {
        "columns": buckets | measures,
        "columnOrder": [*outermost, *(id for id in buckets if id not in outermost), *measures],  # time innermost
        "incompleteColumns": {},
        "sampling": 1,
    }
    state = {
        "visualization": visualization(panel, query, layer, list(buckets), order),
        "query": kql(query.where),
        "filters": [],
        "datasourceStates": {"formBased": {"layers": {layer: form}}},
        "internalReferences": [],
        "adHocDataViews": {},
    }
    attributes = {
        "title": panel.title,
        "description": panel.help,
        "visualizationType": type_of(panel),
        "type": "lens",
        "references": [reference],
        "state": state,
    }
    return attributes, reference


def _list(panel: Panel, query: Documents, view: Reference) -> dict[str, Any]:
    source = {"query": kql(query.where), "filter": [], "indexRefName": _LIST_INDEX}
    return {
        "title": panel.title,
        "description": panel.help,
        "columns": [each for each in query.columns if each != "@timestamp"],  # Kibana shows the time by itself
        "sort": [["@timestamp", "desc"]],
        "grid": {},
        "hideChart": True,
        "isTextBasedQuery": False,
        "timeRestore": False,
        "usesAdHocDataView": False,
        "kibanaSavedObjectMeta": {"searchSourceJSON": json.dumps(source)},
        "references": [{**view, "name": _LIST_INDEX}],
    }


def _drills(me: str, dashboard: Dashboard, panel: Panel, ids: Identity) -> tuple[dict[str, Any], list[Reference]]:
    if not panel.drill:
        return {}, []
    event = ids.of("drill", me)
    kept = same_fields(dashboard, next(each for each in DASHBOARDS if each.id == panel.drill))
    config = {"useCurrentFilters": kept, "useCurrentDateRange": True, "openInNewTab": False}
    action = {"factoryId": "DASHBOARD_TO_DASHBOARD_DRILLDOWN", "name": f"Open {panel.drill}", "config": config}
    name = f"{me}:drilldown:DASHBOARD_TO_DASHBOARD_DRILLDOWN:{event}:dashboardId"
    events = [{"eventId": event, "triggers": ["FILTER_TRIGGER"], "action": action}]
    target = {"type": "dashboard", "id": ids.of("dashboard", panel.drill), "name": name}
    return {"dynamicActions": {"events": events}}, [target]
