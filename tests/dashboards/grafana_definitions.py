"""The JSON models of Grafana 10.4 and newer, so far as the dashboards use them: anything else is refused.

Written from Grafana's source: the kind `dashboard` (`kinds/dashboard/dashboard_kind.cue`), the queries of the data
sources Elasticsearch and Prometheus (`dataquery.cue` of both), the options and field options of the panels stat,
timeseries, status-history and table (`panelcfg` of each), and the command that adds a data source.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

from tests.dashboards.grafana_query_definitions import ElasticsearchQuery, PrometheusQuery, Source

Uid = Annotated[str, StringConstraints(pattern=r"^[a-zA-Z0-9_-]{8,40}$")]
Unit = Literal["none", "short", "s", "bytes", "eps", "wps", "mps", "percentunit", "dateTimeAsIso"]
Colour = Annotated[str, StringConstraints(pattern=r"^(green|yellow|orange|red|#[0-9a-f]{6})$")]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class GridPos(_Strict):
    """Where a panel stands: 24 columns."""

    x: Annotated[int, Field(ge=0, lt=24)]
    y: Annotated[int, Field(ge=0)]
    w: Annotated[int, Field(ge=1, le=24)]
    h: Annotated[int, Field(ge=1)]


class Threshold(_Strict):
    """A colour from a value on; the first one, without a value, from minus infinity on."""

    color: Colour
    value: float | None


class Thresholds(_Strict):
    """Colours by value."""

    mode: Literal["absolute"]
    steps: Annotated[list[Threshold], Field(min_length=1)]

    @model_validator(mode="after")
    def _sorted(self) -> Thresholds:
        first, *others = (each.value for each in self.steps)
        values = [each for each in others if each is not None]
        if first is not None or len(values) < len(others) or values != sorted(values):
            raise ValueError("Grafana wants the step without a value first, then rising values")
        return self


class Color(_Strict):
    """How a colour is chosen."""

    mode: Literal["thresholds", "palette-classic", "fixed"]
    fixedColor: Colour | None = None  # noqa: N815  names are Grafana's


class DataLink(_Strict):
    """A link at a value."""

    title: str
    url: Annotated[str, StringConstraints(pattern="^/d/")]
    targetBlank: bool  # noqa: N815


class Stacking(_Strict):
    """How bars are stacked."""

    mode: Literal["none", "normal", "percent"]
    group: str


class FieldOptions(_Strict):
    """Field options of a panel type (`custom`)."""

    drawStyle: Literal["line", "bars", "points"] | None = None  # noqa: N815
    fillOpacity: Annotated[int, Field(ge=0, le=100)] | None = None  # noqa: N815
    stacking: Stacking | None = None
    spanNulls: bool | None = None  # noqa: N815


class FieldDefaults(_Strict):
    """How values are written and coloured (`FieldConfig`)."""

    unit: Unit
    decimals: int | None = None
    min: float | None = None
    max: float | None = None
    noValue: str | None = None  # noqa: N815
    thresholds: Thresholds | None = None
    color: Color | None = None
    links: list[DataLink] | None = None
    custom: FieldOptions | None = None


class Matcher(_Strict):
    """The field that an override is for."""

    id: Literal["byName"]
    options: str


class DisplayName(_Strict):
    """Another name of a field."""

    id: Literal["displayName"]
    value: str


class UnitOf(_Strict):
    """The unit of a field."""

    id: Literal["unit"]
    value: Unit


class LinksOf(_Strict):
    """The links of a field."""

    id: Literal["links"]
    value: list[DataLink]


class Override(_Strict):
    """How one field differs from the others."""

    matcher: Matcher
    properties: list[Annotated[DisplayName | UnitOf | LinksOf, Field(discriminator="id")]]


class FieldConfig(_Strict):
    """How the fields of a panel are shown (`FieldConfigSource`)."""

    defaults: FieldDefaults
    overrides: list[Override]


class Legend(_Strict):
    """Where the names of the lines stand (`VizLegendOptions`)."""

    calcs: list[str]
    displayMode: Literal["list", "table", "hidden"]  # noqa: N815
    placement: Literal["bottom", "right"]
    showLegend: bool  # noqa: N815


class Tooltip(_Strict):
    """What is shown under the pointer (`VizTooltipOptions`)."""

    mode: Literal["single", "multi", "none"]
    sort: Literal["asc", "desc", "none"]


class Reduce(_Strict):
    """The number that stands for a series (`ReduceDataOptions`)."""

    calcs: list[Literal["lastNotNull", "last", "max", "min", "mean", "sum"]]
    fields: str
    values: bool


class StatOptions(_Strict):
    """Options of the panel stat."""

    reduceOptions: Reduce  # noqa: N815
    orientation: Literal["auto", "horizontal", "vertical"]
    colorMode: Literal["value", "background", "background_solid", "none"]  # noqa: N815
    graphMode: Literal["none", "line", "area"]  # noqa: N815
    justifyMode: Literal["auto", "center"]  # noqa: N815
    textMode: Literal["auto", "value", "value_and_name", "name", "none"]  # noqa: N815


class TimeSeriesOptions(_Strict):
    """Options of the panel timeseries."""

    legend: Legend
    tooltip: Tooltip


class StatusHistoryOptions(_Strict):
    """Options of the panel status-history."""

    showValue: Literal["auto", "never", "always"]  # noqa: N815
    rowHeight: Annotated[float, Field(gt=0, le=1)]  # noqa: N815
    legend: Legend
    tooltip: Tooltip


class TableOptions(_Strict):
    """Options of the panel table."""

    showHeader: bool  # noqa: N815


class Include(_Strict):
    """Options of a transformation: the fields that stay."""

    include: dict[Literal["names"], list[str]]


class FilterFields(_Strict):
    """The transformation that leaves some fields."""

    id: Literal["filterFieldsByName"]
    options: Include


class Order(_Strict):
    """Options of a transformation: the place of each field."""

    indexByName: dict[str, int]  # noqa: N815


class Organize(_Strict):
    """The transformation that orders fields."""

    id: Literal["organize"]
    options: Order


class _Panel(_Strict):
    id: Annotated[int, Field(ge=1)]
    title: str
    description: str
    datasource: Source
    gridPos: GridPos  # noqa: N815
    targets: Annotated[list[ElasticsearchQuery | PrometheusQuery], Field(min_length=1)]
    transformations: list[Annotated[FilterFields | Organize, Field(discriminator="id")]]
    interval: Annotated[str, StringConstraints(pattern=r"^\d+(ms|s|m|h|d)$")] | None = None
    fieldConfig: FieldConfig  # noqa: N815

    @model_validator(mode="after")
    def _asked(self) -> _Panel:
        if any(each.datasource != self.datasource for each in self.targets):
            raise ValueError("Grafana asks the panel's data source; another one needs the data source -- Mixed --")
        return self


class StatPanel(_Panel):
    """A number."""

    type: Literal["stat"]
    options: StatOptions


class TimeSeriesPanel(_Panel):
    """Lines or bars."""

    type: Literal["timeseries"]
    options: TimeSeriesOptions


class StatusHistoryPanel(_Panel):
    """A strip of coloured cells for each series."""

    type: Literal["status-history"]
    options: StatusHistoryOptions


class TablePanel(_Panel):
    """A table."""

    type: Literal["table"]
    options: TableOptions


Panel = Annotated[StatPanel | TimeSeriesPanel | StatusHistoryPanel | TablePanel, Field(discriminator="type")]


class Current(_Strict):
    """What is chosen in a variable."""

    text: str | list[str] = ""
    value: str | list[str] = ""


class _Variable(_Strict):
    name: Annotated[str, StringConstraints(pattern=r"^\w+$")]
    label: str
    multi: bool
    includeAll: bool  # noqa: N815
    current: Current
    refresh: Literal[0, 1, 2]
    hide: Literal[0, 1, 2]


class QueryVariable(_Variable):
    """A variable whose values a data source tells."""

    type: Literal["query"]
    datasource: Source
    query: str
    allValue: str  # noqa: N815
    sort: Literal[0, 1, 2]


class SourceVariable(_Variable):
    """A variable that chooses one of the data sources of a type."""

    type: Literal["datasource"]
    query: Literal["prometheus"]
    regex: str


class DashboardLink(_Strict):
    """Links to all dashboards with a tag."""

    type: Literal["dashboards"]
    title: str
    tags: list[str]
    icon: Literal["external link"]
    tooltip: str
    url: str
    asDropdown: bool  # noqa: N815
    targetBlank: bool  # noqa: N815
    includeVars: bool  # noqa: N815
    keepTime: bool  # noqa: N815


class Times(_Strict):
    """The time range with which a dashboard opens."""

    model_config = ConfigDict(extra="forbid", strict=True, populate_by_name=True)

    since: Annotated[str, Field(alias="from")]
    to: Literal["now"]


class Annotation(_Strict):
    """An annotation from Elasticsearch, as `annotationQuery` of this data source reads it."""

    name: str
    datasource: Source
    enable: bool
    hide: bool
    iconColor: Colour  # noqa: N815
    query: str
    timeField: Literal["@timestamp"]  # noqa: N815
    textField: str  # noqa: N815


class Dashboard(_Strict):
    """A dashboard."""

    uid: Uid
    title: str
    description: str
    tags: list[str]
    schemaVersion: Annotated[int, Field(ge=36, le=42)]  # noqa: N815
    editable: bool
    graphTooltip: Literal[0, 1, 2]  # noqa: N815
    refresh: str
    time: Times
    links: list[DashboardLink]
    templating: dict[Literal["list"], list[Annotated[QueryVariable | SourceVariable, Field(discriminator="type")]]]
    annotations: dict[Literal["list"], list[Annotation]]
    panels: list[Panel]

    @model_validator(mode="after")
    def _told_apart(self) -> Dashboard:
        for names in ([each.id for each in self.panels], [each.name for each in self.templating["list"]]):
            if len(set(names)) < len(names):
                raise ValueError("panels have ids, and variables names, of their own")
        return self


class ElasticsearchOptions(_Strict):
    """What the Elasticsearch data source needs to know."""

    index: str
    timeField: str  # noqa: N815
    maxConcurrentShardRequests: int  # noqa: N815
    logMessageField: str  # noqa: N815


class DataSource(_Strict):
    """A data source, as the command that adds one takes it."""

    uid: Uid
    name: Annotated[str, StringConstraints(min_length=1, max_length=190)]
    type: Literal["elasticsearch"]
    access: Literal["proxy"]
    url: str
    jsonData: ElasticsearchOptions  # noqa: N815
