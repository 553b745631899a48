"""The searches that Kibana sends for the saved objects: read from them alone, not from what they were made of.

The form is that of Lens' form-based data source (`toEsAggs` of each operation) and of Discover's list of documents.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from dashboards.kibana.intervals import interval
from dashboards.kibana.kql_requests import filters
from dashboards.panels.answer import Request, TimeRange

_DIRECT = {"max": "max", "min": "min", "average": "avg", "unique_count": "cardinality"}


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
