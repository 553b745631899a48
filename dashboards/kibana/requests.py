"""The searches that Kibana sends for the saved objects: read from them alone, not from what they were made of.

The form is that of Lens' form-based data source (`toEsAggs` of each operation) and of Discover's list of documents. How
long a bar is follows `TimeBuckets` in Kibana's source, where the advanced settings `histogram:barTarget` (50) and
`histogram:maxBars` (100) have their defaults. KQL is read as far as our dashboards use it. So panels are tried on an
Elasticsearch, without a Kibana.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from dashboards.panels.answer import Request, TimeRange
from engine.spec.duration import duration_ms

Filter = dict[str, Any]

_CLAUSE = re.compile(r'(not )?([^\s:"()]+) ?(:|>=) (\([^)]*\)|"(?:[^"\\]|\\.)*"|[^\s"()]+)')
_DIRECT = {"max": "max", "min": "min", "average": "avg", "unique_count": "cardinality"}
_TARGET_BARS, _MOST_BARS = 50, 100
_S, _M, _H, _D = 1_000, 60_000, 3_600_000, 86_400_000
_YEAR = 365 * _D
_STEPS = (
    (_YEAR, 30 * _D), (21 * _D, 7 * _D), (7 * _D, _D), (_D, 12 * _H), (6 * _H, 3 * _H), (2 * _H, _H),
    (45 * _M, 30 * _M), (20 * _M, 10 * _M), (9 * _M, 5 * _M), (3 * _M, _M), (45 * _S, 30 * _S), (15 * _S, 10 * _S),
    (7_500, 5 * _S), (5 * _S, _S), (500, 100),
)  # fmt: skip
"""(time for each of the wanted bars up to which an interval is taken, that interval), the longest first."""


def filters(query: str) -> list[Filter]:
    """The filters of a query, all of which must hold.

    Raises:
        ValueError: If the query uses what the dashboards do not.

    >>> filters('not metric : "_machine" and revision >= 1')[1]
    {'range': {'revision': {'gte': '1'}}}
    """
    conditions: list[Filter] = []
    rest = query.replace(": *", " : *") if re.fullmatch(r"[^\s:]+: \*", query) else query
    while rest:
        clause = _CLAUSE.match(rest)
        if clause is None:
            raise ValueError(f"no KQL of these dashboards: {query}")
        one = _filter(*clause.group(2, 3, 4))
        conditions.append({"bool": {"must_not": one}} if clause.group(1) else one)
        rest = rest[clause.end() :]
        if rest and not rest.startswith(" and "):
            raise ValueError(f"no KQL of these dashboards: {query}")
        rest = rest.removeprefix(" and ")
    return conditions


def _filter(field: str, operator: str, value: str) -> Filter:
    if operator == ">=":
        return {"range": {field: {"gte": value}}}
    if value.startswith("("):
        return _any([_one(field, each) for each in value[1:-1].split(" or ")])
    return _any([_one(field, value)])


def _any(filters: list[Filter]) -> Filter:
    return {"bool": {"should": filters, "minimum_should_match": 1}}


def _one(field: str, value: str) -> Filter:
    if value == "*":
        return {"exists": {"field": field}}
    if value.startswith('"'):
        return {"match_phrase": {field: re.sub(r"\\(.)", r"\1", value[1:-1])}}
    if "*" in value:
        text = "*".join(re.sub(r"[^\w]", r"\\\g<0>", part) for part in value.split("*"))
        return {"query_string": {"fields": [field], "query": text}}
    return {"match": {field: value}}


def interval(chosen: str, when: TimeRange) -> str:
    """The `fixed_interval` that is asked for.

    Args:
        chosen: The interval of the column: ``auto``, or a duration.
        when: The time range of the dashboard.

    A duration with which there would be many bars becomes the longest usual interval that is at most a hundredth of the
    time range. So there can be some hundred bars, but not one for each of a thousand windows.

    >>> interval("auto", TimeRange(0, 3_600_000)), interval("10s", TimeRange(0, 3_600_000))
    ('60000ms', '30000ms')
    >>> interval("10s", TimeRange(0, 45 * 60_000))
    '10000ms'
    """
    span = when.end - when.start
    wanted = _near(span / _TARGET_BARS) if chosen == "auto" else duration_ms(chosen)
    return f"{max(wanted, _less_than(span / _MOST_BARS))}ms"


def _near(bar: float) -> int:
    if bar < _STEPS[-1][0]:
        return max(1, int(bar))
    return next((length for bound, length in reversed(_STEPS) if bar < bound), _YEAR)


def _less_than(bar: float) -> int:
    return next((length for _, length in ((0, _YEAR), *_STEPS) if length <= bar), max(1, int(bar)))


def requests(
    objects: Sequence[dict[str, Any]], when: TimeRange, chosen: Sequence[dict[str, Any]] = ()
) -> Iterator[Request]:
    """The searches of all panels of all dashboards.

    Args:
        objects: The saved objects.
        when: The time range of the dashboard.
        chosen: Filters of the controls.
    """
    views = {each["id"]: each["attributes"] for each in objects if each["type"] == "index-pattern"}
    for dashboard in (each["attributes"] | each for each in objects if each["type"] == "dashboard"):
        targets = {each["name"]: each["id"] for each in dashboard["references"]}
        for panel in json.loads(dashboard["panelsJSON"]):
            if panel["type"] not in ("lens", "search"):
                continue
            asked = panel["embeddableConfig"]["attributes"]
            view = views[targets[f"{panel['panelIndex']}:{asked['references'][0]['name']}"]]
            build = _lens if panel["type"] == "lens" else _list
            body, buckets, measures = build(asked, when)
            inside = {"gte": when.start, "lte": when.end, "format": "epoch_millis"}
            query = [*_query(asked), {"range": {view["timeFieldName"]: inside}}, *chosen]
            body = {**body, "query": {"bool": {"filter": query}}, "track_total_hits": True}
            yield Request(dashboard["title"], panel["title"], view["title"], body, buckets, measures)


def _query(attributes: dict[str, Any]) -> list[dict[str, Any]]:
    if "state" in attributes:
        return filters(attributes["state"]["query"]["query"])
    return filters(json.loads(attributes["kibanaSavedObjectMeta"]["searchSourceJSON"])["query"]["query"])


def _list(attributes: dict[str, Any], _when: TimeRange) -> tuple[dict[str, Any], dict[str, str], dict[str, str]]:
    sort = [{field: {"order": order, "unmapped_type": "boolean"}} for field, order in attributes["sort"]]
    fields = [{"field": name} for name in (attributes["sort"][0][0], *attributes["columns"])]
    return {"size": 500, "sort": sort, "fields": fields, "_source": False}, {}, {}


def _lens(attributes: dict[str, Any], when: TimeRange) -> tuple[dict[str, Any], dict[str, str], dict[str, str]]:
    (layer,) = attributes["state"]["datasourceStates"]["formBased"]["layers"].values()
    columns = layer["columns"]
    buckets = [name for name in layer["columnOrder"] if columns[name]["isBucketed"]]
    measures = {name: columns[name] for name in layer["columnOrder"] if not columns[name]["isBucketed"]}
    inner = {name: _measure(name, column) for name, column in measures.items() if column["operationType"] != "count"}
    aggregations = inner
    for name in reversed(buckets):
        bucket = _bucket(columns[name], columns, when)
        by = columns[name]["params"].get("orderBy", {}).get("columnId")
        beside = {by: inner[by]} if by in inner else {}
        below = aggregations | beside
        aggregations = {name: bucket | ({"aggs": below} if below else {})}
    titles = {name if name in inner else "": column["label"] for name, column in measures.items()}
    body = {"size": 0, "aggs": aggregations} if aggregations else {"size": 0}
    return body, {name: columns[name]["label"] for name in buckets}, titles


def _bucket(column: dict[str, Any], columns: dict[str, Any], when: TimeRange) -> dict[str, Any]:
    params = column["params"]
    match column["operationType"]:
        case "date_histogram":
            histogram = {
                "field": column["sourceField"],
                "fixed_interval": interval(params["interval"], when),
                "time_zone": "UTC",
            }
            bounds = {"min": when.start, "max": when.end}
            empty = (
                {"min_doc_count": 0, "extended_bounds": bounds} if params["includeEmptyRows"] else {"min_doc_count": 1}
            )
            return {"date_histogram": histogram | empty}
        case "terms":
            order = params["orderBy"]
            by = order.get("columnId")
            key = "_key" if by is None else "_count" if columns[by]["operationType"] == "count" else by
            return {
                "terms": {
                    "field": column["sourceField"],
                    "size": params["size"],
                    "order": {key: params["orderDirection"]},
                }
            }
        case "filters":
            named = {each["label"]: {"bool": {"filter": filters(each["input"]["query"])}} for each in params["filters"]}
            return {"filters": {"filters": named}}
    raise ValueError(column["operationType"])


def _measure(name: str, column: dict[str, Any]) -> dict[str, Any]:
    kind, field = column["operationType"], column["sourceField"]
    if kind == "median":
        aggregation: dict[str, Any] = {"percentiles": {"field": field, "percents": [50]}}
    elif kind == "last_value":
        newest = [{column["params"]["sortField"]: {"order": "desc"}}]
        aggregation = {"top_hits": {"fields": [{"field": field}], "_source": False, "size": 1, "sort": newest}}
    else:
        aggregation = {_DIRECT[kind]: {"field": field}}
    if "filter" not in column:
        return aggregation
    return {"filter": {"bool": {"filter": filters(column["filter"]["query"])}}, "aggs": {name: aggregation}}
