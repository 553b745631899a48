"""Columns of a Lens layer (form-based data source): one for each bucket and each measure of a summary."""

from __future__ import annotations

from typing import Any

from dashboards.kibana.kql import kql
from dashboards.panels.query import Bucket, Groups, Measure, Over, Top

Column = dict[str, Any]

_LENS_TYPES = {"keyword": "string", "text": "string", "date": "date", "double": "number", "long": "number"}
_OPERATIONS = {
    "count": "count", "max": "max", "min": "min", "average": "average", "median": "median",
    "unique": "unique_count", "newest": "last_value",
}  # fmt: skip
_DECIMALS = {"whole": 0, "score": 1, "value": 2}


def bucket_column(bucket: Bucket, types: dict[str, str], ordered_by: str | None, window: str) -> Column:
    """The column of a bucket.

    Args:
        bucket: The bucket; versions must have become groups.
        types: Elasticsearch types by field.
        ordered_by: Id of the column of the measure by which a `Top` is ordered.
        window: Distance of the windows, as Kibana writes it.
    """
    match bucket:
        case Over(field, each_window):
            length = window if each_window else "auto"
            return {
                "label": field,
                "dataType": "date",
                "operationType": "date_histogram",
                "sourceField": field,
                "isBucketed": True,
                "scale": "interval",
                "params": {
                    "interval": length,
                    "includeEmptyRows": True,
                    "dropPartials": False,
                },
            }
        case Top():
            return _terms(bucket, types, ordered_by)
        case Groups(groups, title):
            filters = [{"input": kql(group.where), "label": group.name} for group in groups]
            return {
                "label": title or "Filters",
                "customLabel": True,
                "dataType": "string",
                "operationType": "filters",
                "scale": "ordinal",
                "isBucketed": True,
                "params": {"filters": filters},
            }
    raise TypeError(bucket)


def _terms(bucket: Top, types: dict[str, str], ordered_by: str | None) -> Column:
    order = {"type": "column", "columnId": ordered_by} if ordered_by else {"type": "alphabetical", "fallback": False}
    return {
        "label": bucket.title or bucket.field,
        "customLabel": True,
        "dataType": _LENS_TYPES[types[bucket.field]],
        "operationType": "terms",
        "scale": "ordinal",
        "sourceField": bucket.field,
        "isBucketed": True,
        "params": {
            "size": bucket.size,
            "orderBy": order,
            "orderDirection": "asc" if ordered_by is None else "desc",
            "otherBucket": False,
            "missingBucket": False,
            "parentFormat": {"id": "terms"},
            "include": [],
            "exclude": [],
            "includeIsRegex": False,
            "excludeIsRegex": False,
        },
    }


def measure_column(measure: Measure, types: dict[str, str]) -> Column:
    """The column of a measure."""
    kind = _LENS_TYPES[types[measure.field]] if measure.operation in ("max", "min", "newest") else "number"
    params: dict[str, Any] = {} if measure.operation == "newest" else {"emptyAsNull": True}
    if kind == "number" and measure.operation not in ("count", "unique"):  # these are whole numbers anyway
        params["format"] = {"id": "number", "params": {"decimals": _DECIMALS[measure.format]}}
    column: Column = {
        "label": measure.title,
        "customLabel": True,
        "dataType": kind,
        "operationType": _OPERATIONS[measure.operation],
        "isBucketed": False,
        "scale": "ordinal" if kind == "string" else "ratio",
        "sourceField": measure.field or "___records___",
        "params": params,
    }
    if measure.operation == "newest":
        column["filter"] = {"query": f"{measure.field}: *", "language": "kuery"}
        # Lens asks for the newest document itself: the short form (top_metrics) knows no text and needs a module
        params |= {"sortField": "@timestamp", "showArrayValues": True}
    return column
