"""The searches that Grafana's Elasticsearch data source sends for dashboards: read from their JSON models alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dashboards.panels.answer import Request, TimeRange
from engine.spec.duration import duration_ms

_DIRECT = {"max": "max", "min": "min", "avg": "avg", "cardinality": "cardinality"}


def requests(
    dashboards: Sequence[dict[str, Any]],
    sources: Sequence[dict[str, Any]],
    when: TimeRange,
    chosen: Mapping[str, str] | None = None,
) -> list[Request]:
    """The searches of all panels of all dashboards that ask Elasticsearch.

    Args:
        dashboards: JSON models.
        sources: Their data sources.
        when: The time range.
        chosen: Values of variables as Lucene; a variable that is absent stands for all values.
    """
    known = {each["uid"]: each["jsonData"] for each in sources}
    found = []
    for dashboard in dashboards:
        variables = [each for each in dashboard["templating"]["list"] if "allValue" in each]
        values = {each["name"]: each["allValue"] for each in variables} | dict(chosen or {})
        for panel in dashboard["panels"]:
            bar = max(when.interval(), panel.get("interval", "0s"), key=duration_ms)
            for target in panel["targets"]:
                if target["datasource"]["type"] == "elasticsearch":
                    source = known[target["datasource"]["uid"]]
                    found.append(_request(dashboard["title"], panel["title"], target, source, values, when, bar))
    return found


def annotations(
    dashboard: dict[str, Any],
    sources: Sequence[dict[str, Any]],
    when: TimeRange,
    chosen: Mapping[str, str] | None = None,
) -> dict[str, tuple[str, dict[str, Any]]]:
    """The searches for the annotations of a dashboard (`annotationQuery`): index and body by the annotation's name."""
    known = {each["uid"]: each["jsonData"] for each in sources}
    values = {each["name"]: each["allValue"] for each in dashboard["templating"]["list"]} | dict(chosen or {})
    found = {}
    for each in dashboard["annotations"]["list"]:
        query = each["query"]
        for name, value in values.items():
            query = query.replace(f"${name}", value)
        inside = {each["timeField"]: {"gte": when.start, "lte": when.end, "format": "epoch_millis"}}
        text = {"query_string": {"query": query}}
        times = {"bool": {"should": [{"range": inside}], "minimum_should_match": 1}}
        body = {"query": {"bool": {"filter": [times, text]}}, "size": 10_000}
        found[each["name"]] = known[each["datasource"]["uid"]]["index"], body
    return found


def _request(
    dashboard: str,
    panel: str,
    target: dict[str, Any],
    source: Mapping[str, str],
    values: Mapping[str, str],
    when: TimeRange,
    bar: str,
) -> Request:
    query = target["query"]
    for name, value in values.items():
        query = query.replace(f"${name}", value)
    inside = {"gte": when.start, "lte": when.end, "format": "epoch_millis"}
    text = {"query_string": {"analyze_wildcard": True, "query": query}}
    body: dict[str, Any] = {"query": {"bool": {"filter": [{"range": {source["timeField"]: inside}}, text]}}}
    body["track_total_hits"] = True
    metrics = {each["id"]: each for each in target["metrics"]}
    if metrics["1"]["type"] == "raw_data":
        sort = [{source["timeField"]: {"order": "desc", "unmapped_type": "boolean"}}, {"_doc": {"order": "desc"}}]
        more = {"size": int(metrics["1"]["settings"]["size"]), "sort": sort, "fields": [_time(source)]}
        return Request(dashboard, panel, source["index"], body | more)
    inner = {id: _metric(each) for id, each in metrics.items() if each["type"] != "count"}
    aggregations, titles = inner, {}
    for bucket in reversed(target["bucketAggs"]):
        by = bucket["settings"].get("orderBy")
        beside = {by: inner[by]} if by in inner else {}
        below = aggregations | beside
        aggregations = {bucket["id"]: _bucket(bucket, when, bar) | ({"aggs": below} if below else {})}
    for bucket in target["bucketAggs"]:
        titles[bucket["id"]] = bucket.get("field", "filter")
    names = {id if id in inner else "": id for id in metrics}
    return Request(dashboard, panel, source["index"], {"size": 0, **body, "aggs": aggregations}, titles, names)


def _time(source: Mapping[str, str]) -> dict[str, str]:
    return {"field": source["timeField"], "format": "strict_date_optional_time_nanos"}


def _metric(metric: dict[str, Any]) -> dict[str, Any]:
    if metric["type"] == "percentiles":
        percents = [float(each) for each in metric["settings"]["percents"]]
        return {"percentiles": {"field": metric["field"], "percents": percents}}
    return {_DIRECT[metric["type"]]: {"field": metric["field"]}}


def _bucket(bucket: dict[str, Any], when: TimeRange, bar: str) -> dict[str, Any]:
    settings = bucket["settings"]
    match bucket["type"]:
        case "date_histogram":
            bounds = {"min": when.start, "max": when.end}
            return {
                "date_histogram": {
                    "field": bucket["field"], "fixed_interval": bar, "extended_bounds": bounds,
                    "min_doc_count": int(settings["min_doc_count"]), "format": "epoch_millis",
                }
            }  # fmt: skip
        case "terms":
            key = {"_term": "_key"}.get(settings["orderBy"], settings["orderBy"])
            found = {"field": bucket["field"], "size": int(settings["size"]), "order": {key: settings["order"]}}
            return {"terms": found | {"min_doc_count": int(settings["min_doc_count"])}}
        case "filters":
            named = {
                each["label"]: {"query_string": {"query": each["query"], "analyze_wildcard": True}}
                for each in settings["filters"]
            }
            return {"filters": {"filters": named}}
    raise ValueError(bucket["type"])
