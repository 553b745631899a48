"""The query of a panel for Grafana's Elasticsearch data source (`ElasticsearchDataQuery`), with Lucene's syntax."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from dashboards.panels.panel import Dashboard, Panel
from dashboards.panels.query import (
    Among,
    AtLeast,
    Bucket,
    Condition,
    Documents,
    Groups,
    InIndices,
    Measure,
    Over,
    Present,
    Top,
    Versions,
)
from dashboards.panels.site import Site

Target = dict[str, Any]

_TYPES = {
    "count": "count",
    "max": "max",
    "min": "min",
    "average": "avg",
    "median": "percentiles",
    "unique": "cardinality",
}
_NAMES = {
    "count": "Count", "max": "Max", "min": "Min", "avg": "Average", "percentiles": "p50.0",
    "cardinality": "Unique Count",
}  # fmt: skip

VARIABLES = {
    "host.name": "machine", "metric": "metric", "kind": "kind", "severity": "severity", "incident.state": "state",
    "k8s.workload.name": "workload", "event.action": "action",
}  # fmt: skip
"""The dashboard variable of each field that a reader can choose."""


def measures_of(panel: Panel) -> list[Measure]:
    """The measures that Grafana can show: its newest values (`top_metrics`) are no part of each Elasticsearch."""
    assert not isinstance(panel.query, Documents)
    return [measure for measure in panel.query.measures if measure.operation != "newest"]


def column_name(measure: Measure, measures: list[Measure]) -> str:
    """The name of the column of a measure in the table that the data source gives."""
    kind = _TYPES[measure.operation]
    several = sum(other.operation == measure.operation for other in measures) > 1
    return f"{_NAMES[kind]} {measure.field}" if several and measure.field else _NAMES[kind]


def target(dashboard: Dashboard, panel: Panel, site: Site, source: str) -> Target:
    """The query of a panel.

    Args:
        dashboard: The dashboard, whose variables filter the panel.
        panel: The panel.
        site: The installation.
        source: Uid of the data source.
    """
    chosen = " AND ".join(f"{control.field}:${VARIABLES[control.field]}" for control in dashboard.controls)
    query = " AND ".join(part for part in (lucene(panel.query.where), chosen) if part) or "*"
    model: Target = {
        "refId": "A",
        "datasource": {"type": "elasticsearch", "uid": source},
        "query": query,
        "timeField": site.time_field(panel.data),
        "alias": "",
    }
    if isinstance(panel.query, Documents):
        return model | {"metrics": [{"id": "1", "type": "raw_data", "settings": {"size": "500"}}], "bucketAggs": []}
    measures = measures_of(panel)
    metrics = [_metric(str(number), measure) for number, measure in enumerate(measures, 1)]
    buckets = sorted(panel.query.buckets, key=lambda bucket: isinstance(bucket, Over))  # time is the innermost
    first = len(metrics) + 1
    shown = [_bucket(str(first + n), bucket, measures, site) for n, bucket in enumerate(buckets)]
    # the data source refuses measures without any bucket
    everything = {"id": str(first), "type": "filters", "settings": {"filters": [{"query": "*", "label": "all"}]}}
    return model | {"metrics": metrics, "bucketAggs": shown or [everything]}


def _metric(number: str, measure: Measure) -> dict[str, Any]:
    kind = _TYPES[measure.operation]
    metric: dict[str, Any] = {"id": number, "type": kind}
    if measure.field:
        metric["field"] = measure.field
    if kind == "percentiles":
        metric["settings"] = {"percents": ["50"]}
    return metric


def _bucket(number: str, bucket: Bucket, measures: list[Measure], site: Site) -> dict[str, Any]:
    shown = site.groups(bucket.title) if isinstance(bucket, Versions) else bucket
    if isinstance(shown, Over):
        settings: dict[str, Any] = {"interval": "auto", "min_doc_count": "0", "trimEdges": "0"}
        return {"id": number, "type": "date_histogram", "field": shown.field, "settings": settings}
    if isinstance(shown, Groups):
        filters = [{"query": lucene(group.where), "label": group.name} for group in shown.groups]
        return {"id": number, "type": "filters", "settings": {"filters": filters}}
    assert isinstance(shown, Top)
    by = "_term" if shown.by is None else "_count" if measures[shown.by].operation == "count" else str(shown.by + 1)
    order = "asc" if shown.by is None else "desc"
    settings = {"size": str(shown.size), "order": order, "orderBy": by, "min_doc_count": "1", "missing": None}
    return {"id": number, "type": "terms", "field": shown.field, "settings": {k: v for k, v in settings.items() if v}}


def lucene(conditions: Iterable[Condition]) -> str:
    """A query that is true for the documents for which all conditions are.

    >>> lucene([Among("kind", ("anomaly", "absence")), Among("metric", ("_machine",), no=True), AtLeast("revision", 1)])
    'kind:("anomaly" OR "absence") AND NOT metric:("_machine") AND revision:>=1'
    """
    return " AND ".join(map(_text, conditions))


def _text(condition: Condition) -> str:
    match condition:
        case Among(field, values, no):
            quoted = ['"' + re.sub(r'(["\\])', r"\\\1", value) + '"' for value in values]
            return f"{'NOT ' if no else ''}{field}:({' OR '.join(quoted)})"
        case Present(field):
            return f"_exists_:{field}"
        case AtLeast(field, value):
            return f"{field}:>={value:g}"
        case InIndices(patterns):
            escaped = [re.sub(r"[^\w.*]", r"\\\g<0>", pattern) for pattern in patterns]
            return f"_index:({' OR '.join(escaped)})"
