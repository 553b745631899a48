"""The saved objects as Kibana 8.19 defines them, so far as the dashboards use them: anything else is refused.

Written from the definitions in Kibana's source: data views and dashboards (`content_management` schemas of the plugins
data_views and dashboard), Lens' persisted state (`FormBasedPersistedState`, `XYState`, `HeatmapVisualizationState`,
`DatatableVisualizationState`, `MetricVisualizationState`), links, controls and dynamic actions (drill-downs).
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, Json, model_validator


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class Reference(_Strict):
    """A link from one saved object to another."""

    type: Literal["index-pattern", "dashboard"]
    id: str
    name: str


class KqlQuery(_Strict):
    """A query in KQL."""

    query: str
    language: Literal["kuery"]


class DataViewAttributes(_Strict):
    """What a data view holds; objects within are kept as JSON text."""

    title: str
    name: str
    timeFieldName: str  # noqa: N815  names are Kibana's
    allowHidden: bool  # noqa: N815
    fieldAttrs: Json[dict[str, Any]]  # noqa: N815
    fieldFormatMap: Json[dict[str, FieldFormat]]  # noqa: N815
    fields: Json[list[Any]]
    runtimeFieldMap: Json[dict[str, Any]]  # noqa: N815
    sourceFilters: Json[list[Any]]  # noqa: N815


class FieldFormat(_Strict):
    """How the values of a field are written."""

    id: Literal["date", "number", "bytes", "duration", "percent", "string"]
    params: dict[str, Any]


class Grid(_Strict):
    """Where a panel stands: 48 columns."""

    x: Annotated[int, Field(ge=0, lt=48)]
    y: Annotated[int, Field(ge=0)]
    w: Annotated[int, Field(ge=1, le=48)]
    h: Annotated[int, Field(ge=1)]
    i: str


class Column(_Strict):
    """A column of a Lens layer."""

    label: str
    customLabel: bool = False  # noqa: N815
    dataType: Literal["string", "number", "date", "boolean", "ip"]  # noqa: N815
    operationType: Literal[  # noqa: N815
        "date_histogram", "terms", "filters", "count", "max", "min", "average", "median", "unique_count", "last_value"
    ]
    sourceField: str = ""  # noqa: N815
    isBucketed: bool  # noqa: N815
    scale: Literal["ordinal", "interval", "ratio"]
    filter: KqlQuery | None = None
    params: dict[str, Any]


class Layer(_Strict):
    """A layer of the form-based data source."""

    columns: dict[str, Column]
    columnOrder: list[str]  # noqa: N815
    incompleteColumns: dict[str, Any]  # noqa: N815
    sampling: int

    @model_validator(mode="after")
    def _ordered(self) -> Layer:
        if sorted(self.columnOrder) != sorted(self.columns):
            raise ValueError("columnOrder does not name each column once")
        flags = [self.columns[name].isBucketed for name in self.columnOrder]
        if flags != sorted(flags, reverse=True):
            raise ValueError("Lens wants all buckets before the measures")
        for name, column in self.columns.items():
            by = column.params.get("orderBy", {}).get("columnId")
            if by is not None and by not in self.columns:
                raise ValueError(f"{name} is ordered by {by}, which is no column")
        return self


class FormBased(_Strict):
    """The form-based data source."""

    layers: dict[str, Layer]


class Datasources(_Strict):
    """The data sources of a Lens panel."""

    formBased: FormBased  # noqa: N815


class LensState(_Strict):
    """The state of a Lens panel."""

    visualization: dict[str, Any]
    query: KqlQuery
    filters: list[Any]
    datasourceStates: Datasources  # noqa: N815
    internalReferences: list[Any]  # noqa: N815
    adHocDataViews: dict[str, Any]  # noqa: N815


class LensAttributes(_Strict):
    """A Lens visualization by value."""

    title: str
    description: str
    visualizationType: Literal["lnsXY", "lnsMetric", "lnsHeatmap", "lnsDatatable"]  # noqa: N815
    type: Literal["lens"]
    references: list[Reference]
    state: LensState

    @model_validator(mode="after")
    def _joined(self) -> LensAttributes:
        layers = self.state.datasourceStates.formBased.layers
        for name in layers:
            if f"indexpattern-datasource-layer-{name}" not in {each.name for each in self.references}:
                raise ValueError(f"layer {name} has no data view")
        known = {name for layer in layers.values() for name in layer.columns}
        for name in _accessors(self.state.visualization):
            if name not in known:
                raise ValueError(f"the visualization draws {name}, which is no column")
        return self


def _accessors(node: Any) -> list[str]:
    """The ids of columns that a visualization names."""
    if isinstance(node, list):
        return [each for item in node for each in _accessors(item)]
    if not isinstance(node, dict):
        return []
    found: list[str] = []
    for key, value in node.items():
        if isinstance(value, str) and (key.endswith("Accessor") or key == "columnId"):
            found.append(value)
        elif key == "accessors":
            found += value
        else:
            found += _accessors(value)
    return found


class SearchAttributes(_Strict):
    """A list of documents by value."""

    title: str
    description: str
    columns: list[str]
    sort: list[list[str]]
    grid: dict[str, Any]
    hideChart: bool  # noqa: N815
    isTextBasedQuery: bool  # noqa: N815
    timeRestore: bool  # noqa: N815
    usesAdHocDataView: bool  # noqa: N815
    kibanaSavedObjectMeta: dict[Literal["searchSourceJSON"], Json[dict[str, Any]]]  # noqa: N815
    references: list[Reference]


class Link(_Strict):
    """A link to a dashboard."""

    type: Literal["dashboardLink"]
    id: str
    label: str
    order: int
    options: dict[Literal["openInNewTab", "useCurrentDateRange", "useCurrentFilters"], bool]
    destinationRefName: str  # noqa: N815


class LinksAttributes(_Strict):
    """A line of links by value."""

    links: list[Link]
    layout: Literal["horizontal", "vertical"]


class DrillAction(_Strict):
    """What a drill-down does."""

    factoryId: Literal["DASHBOARD_TO_DASHBOARD_DRILLDOWN"]  # noqa: N815
    name: str
    config: dict[Literal["useCurrentFilters", "useCurrentDateRange", "openInNewTab"], bool]


class DrillEvent(_Strict):
    """When a drill-down does something."""

    eventId: str  # noqa: N815
    triggers: list[Literal["FILTER_TRIGGER"]]
    action: DrillAction


class DrillEvents(_Strict):
    """The drill-downs of a panel."""

    events: list[DrillEvent]


class Enhancements(_Strict):
    """What is added to a panel."""

    dynamicActions: DrillEvents | None = None  # noqa: N815


class Config(_Strict):
    """What a panel shows."""

    attributes: LensAttributes | SearchAttributes | LinksAttributes
    description: str = ""
    enhancements: Enhancements


class DashboardPanel(_Strict):
    """A panel of a dashboard."""

    type: Literal["lens", "search", "links"]
    title: str = ""
    panelIndex: str  # noqa: N815
    gridData: Grid  # noqa: N815
    embeddableConfig: Config  # noqa: N815


class ControlInput(_Strict):
    """What a control offers."""

    id: str
    fieldName: str  # noqa: N815
    title: str
    enhancements: dict[str, Any]
    selectedOptions: list[str]  # noqa: N815


class ControlPanel(_Strict):
    """A control of a dashboard."""

    type: Literal["optionsListControl"]
    order: int
    grow: bool
    width: Literal["small", "medium", "large"]
    explicitInput: ControlInput  # noqa: N815


class ControlGroup(_Strict):
    """The controls of a dashboard."""

    chainingSystem: Literal["HIERARCHICAL", "NONE"]  # noqa: N815
    controlStyle: Literal["oneLine", "twoLine"]  # noqa: N815
    ignoreParentSettingsJSON: Json[dict[str, bool]]  # noqa: N815
    panelsJSON: Json[dict[str, ControlPanel]]  # noqa: N815
    showApplySelections: bool  # noqa: N815


class Refresh(_Strict):
    """How often a dashboard is refreshed."""

    pause: bool
    value: int


class DashboardAttributes(_Strict):
    """What a dashboard holds; objects within are kept as JSON text."""

    title: str
    description: str
    version: int
    timeRestore: bool  # noqa: N815
    timeFrom: str  # noqa: N815
    timeTo: str  # noqa: N815
    refreshInterval: Refresh  # noqa: N815
    controlGroupInput: ControlGroup  # noqa: N815
    optionsJSON: Json[dict[str, bool]]  # noqa: N815
    panelsJSON: Json[list[DashboardPanel]]  # noqa: N815
    kibanaSavedObjectMeta: dict[Literal["searchSourceJSON"], Json[dict[str, Any]]]  # noqa: N815


class _Saved(_Strict):
    id: str
    references: list[Reference]
    coreMigrationVersion: Literal["8.8.0"]  # noqa: N815
    managed: Literal[False]


class DataView(_Saved):
    """A data view."""

    type: Literal["index-pattern"]
    typeMigrationVersion: Literal["8.0.0"]  # noqa: N815
    attributes: DataViewAttributes


class DashboardObject(_Saved):
    """A dashboard."""

    type: Literal["dashboard"]
    typeMigrationVersion: Literal["10.2.0"]  # noqa: N815
    attributes: DashboardAttributes

    @model_validator(mode="after")
    def _resolved(self) -> DashboardObject:
        names = {each.name for each in self.references}
        for panel in self.attributes.panelsJSON:
            attributes = panel.embeddableConfig.attributes
            inner = (
                [each.destinationRefName for each in attributes.links]
                if isinstance(attributes, LinksAttributes)
                else [each.name for each in attributes.references]
            )
            drills = panel.embeddableConfig.enhancements.dynamicActions
            for event in drills.events if drills else ():
                inner.append(f"drilldown:{event.action.factoryId}:{event.eventId}:dashboardId")
            for name in inner:
                if f"{panel.panelIndex}:{name}" not in names:
                    raise ValueError(f"the dashboard lacks the reference {panel.panelIndex}:{name}")
        for control in self.attributes.controlGroupInput.panelsJSON:
            if f"controlGroup_{control}:optionsListDataView" not in names:
                raise ValueError(f"the control {control} has no data view")
        return self
