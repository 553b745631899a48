"""All saved objects of an installation, as Kibana's import takes them: one JSON object per line."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from dashboards.kibana.identity import DEFAULT_SPACE, Identity
from dashboards.kibana.panels import Reference, panel_object
from dashboards.panels import DASHBOARDS, Dashboard, Site, placed
from dashboards.panels.catalogue import same_fields
from dashboards.panels.site import ALL_DATA, Data, field_types

SavedObject = dict[str, Any]

_LINKS_HEIGHT = 3
_ALL: dict[str, Any] = {"query": {"query": "", "language": "kuery"}, "filter": []}
_DATE = "YYYY-MM-DD HH:mm:ss.SSS"


def saved_objects(site: Site, space: str = DEFAULT_SPACE) -> list[SavedObject]:
    """The data views and dashboards of an installation in one Kibana space."""
    ids = Identity(site, space)
    return [*(_data_view(data, ids) for data in ALL_DATA), *(_dashboard(each, ids) for each in DASHBOARDS)]


def ndjson(objects: Sequence[SavedObject]) -> str:
    """The objects as the text of a file that Kibana imports."""
    return "".join(json.dumps(each, sort_keys=True, ensure_ascii=False) + "\n" for each in objects)


def _data_view(data: Data, ids: Identity) -> SavedObject:
    formats: dict[str, Any] = {}
    for field, kind in field_types(data).items():
        if kind == "date":
            formats[field] = {"id": "date", "params": {"pattern": _DATE}}
        elif field == "probability":
            formats[field] = {"id": "string", "params": {"transform": False}}  # as it is: 3.4e-10 would become 0
        elif kind == "double":
            formats[field] = {"id": "number", "params": {"pattern": "0,0.[000]"}}
    attributes = {
        "title": ids.site.indices(data),
        "name": ids.site.title(data),
        "timeFieldName": ids.site.time_field(data),
        "allowHidden": False,
        "fieldAttrs": "{}",
        "fieldFormatMap": json.dumps(formats, sort_keys=True),
        "fields": "[]",
        "runtimeFieldMap": "{}",
        "sourceFilters": "[]",
    }
    return _object("index-pattern", "8.0.0", ids.of("data view", data), attributes, [])


def _dashboard(dashboard: Dashboard, ids: Identity) -> SavedObject:
    links, references = _links(dashboard, ids)
    panels = [links]
    for panel, place in placed(dashboard, top=_LINKS_HEIGHT):
        entry, more = panel_object(dashboard, panel, place, ids)
        panels.append(entry)
        references += more
    controls, more = _controls(dashboard, ids)
    options = {"useMargins": True, "syncColors": True, "syncCursor": True, "syncTooltips": False}
    attributes = {
        "title": f"[{ids.site.alias}] {dashboard.title}",
        "description": dashboard.purpose,
        "version": 2,
        "timeRestore": True,
        "timeFrom": dashboard.since,
        "timeTo": "now",
        "refreshInterval": {"pause": False, "value": 10_000},
        "controlGroupInput": controls,
        "optionsJSON": json.dumps({**options, "hidePanelTitles": False}),
        "panelsJSON": json.dumps(panels, sort_keys=True, ensure_ascii=False),
        "kibanaSavedObjectMeta": {"searchSourceJSON": json.dumps(_ALL)},
    }
    return _object("dashboard", "10.2.0", ids.of("dashboard", dashboard.id), attributes, [*references, *more])


def _controls(dashboard: Dashboard, ids: Identity) -> tuple[dict[str, Any], list[Reference]]:
    panels, references = {}, []
    for order, control in enumerate(dashboard.controls):
        me = ids.of("control", dashboard.id, control.field)
        chosen = {
            "id": me,
            "fieldName": control.field,
            "title": control.title,
            "enhancements": {},
            "selectedOptions": [],
        }
        panels[me] = {
            "type": "optionsListControl",
            "order": order,
            "grow": True,
            "width": "medium",
            "explicitInput": chosen,
        }
        data = dashboard.panels[0].data
        name = f"controlGroup_{me}:optionsListDataView"
        references.append({"type": "index-pattern", "id": ids.of("data view", data), "name": name})
    ignored = {"ignoreFilters": False, "ignoreQuery": False, "ignoreTimerange": False, "ignoreValidations": False}
    group = {
        "chainingSystem": "HIERARCHICAL",
        "controlStyle": "oneLine",
        "ignoreParentSettingsJSON": json.dumps(ignored),
        "panelsJSON": json.dumps(panels, sort_keys=True),
        "showApplySelections": False,
    }
    return group, references


def _links(dashboard: Dashboard, ids: Identity) -> tuple[dict[str, Any], list[Reference]]:
    """The line of links to the other dashboards: they keep the time range, and what is chosen if it exists there."""
    me = ids.of("links", dashboard.id)
    links, references = [], []
    for order, other in enumerate(DASHBOARDS):
        kept = same_fields(dashboard, other)
        options = {"openInNewTab": False, "useCurrentDateRange": True, "useCurrentFilters": kept}
        link = ids.of("link", dashboard.id, other.id)
        name = f"link_{link}_dashboard"
        links.append(
            {"type": "dashboardLink", "id": link, "label": other.title, "order": order, "options": options,
             "destinationRefName": name}
        )  # fmt: skip
        references.append({"type": "dashboard", "id": ids.of("dashboard", other.id), "name": f"{me}:{name}"})
    entry = {
        "type": "links",
        "panelIndex": me,
        "gridData": {"x": 0, "y": 0, "w": 48, "h": _LINKS_HEIGHT, "i": me},
        "embeddableConfig": {"attributes": {"links": links, "layout": "horizontal"}, "enhancements": {}},
    }
    return entry, references


def _object(
    kind: str, migrated: str, identity: str, attributes: dict[str, Any], references: list[Reference]
) -> SavedObject:
    return {
        "type": kind,
        "id": identity,
        "attributes": attributes,
        "references": references,
        "coreMigrationVersion": "8.8.0",
        "typeMigrationVersion": migrated,
        "managed": False,
    }
