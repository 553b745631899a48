"""Reads OTLP's JSON where it has its usual shape, several times faster than the reader of protobuf's library.

What is not of the usual shape (another spelling of a name, a number as text where it need not be, an unknown field, a
wrong type) is left to that library, which decides whether it is accepted: so both accept the same messages.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, TypeVar

from opentelemetry.proto.logs.v1.logs_pb2 import SeverityNumber

T = TypeVar("T")
Pairs = tuple[tuple[str, str], ...]
Point = tuple[str, str, Pairs, int, float]
"""(name, kind, attributes, time in nanoseconds, value)"""
Record = tuple[Pairs, str, int, int, str]
"""(attributes, text, time in nanoseconds, severity number, severity text)"""

_WHOLE = re.compile(r"0|-?[1-9][0-9]{0,17}")
_HEX = re.compile(r"(?:[0-9a-f]{16}){0,2}")
_POINT = frozenset(("attributes", "startTimeUnixNano", "timeUnixNano", "asDouble", "asInt", "flags"))
_METRIC = frozenset(("name", "description", "unit"))
_SUM = frozenset(("dataPoints", "aggregationTemporality", "isMonotonic"))
_TEMPORALITIES = {
    0: "count", 1: "count", 2: "counter",
    "AGGREGATION_TEMPORALITY_UNSPECIFIED": "count", "AGGREGATION_TEMPORALITY_DELTA": "count",
    "AGGREGATION_TEMPORALITY_CUMULATIVE": "counter",
}  # fmt: skip
_RECORD = frozenset(
    (
        *("timeUnixNano", "observedTimeUnixNano", "severityNumber", "severityText", "body", "attributes", "traceId"),
        *("spanId", "flags"),
    )
)
_SEVERITIES: dict[str, int] = dict(SeverityNumber.items())
_NOTHING: dict[str, Any] = {}
NO_VALUE = 1
"""The flag of a data point that says that there is no value at this time."""


class _UnusualError(Exception):
    """The message does not have the usual shape."""


def metrics(tree: Any) -> list[tuple[Pairs, list[tuple[str, list[Point] | dict[str, Any]]]]] | None:
    """The resources of a request with metrics; ``None`` if it does not have the usual shape.

    Args:
        tree: The request, parsed.

    Returns:
        For each resource its attributes, and its metrics: the name with its data points, or with the metric itself if
        it is neither a gauge nor a sum.
    """
    try:
        return [
            (
                common,
                [
                    (_typed(metric, "name", str), _metric(metric))
                    for scope in scopes
                    for metric in _typed(scope, "metrics", list)
                ],
            )
            for common, scopes in _resources(tree, "resourceMetrics", "scopeMetrics", "metrics")
        ]
    except (_UnusualError, TypeError, AttributeError, KeyError):
        return None


def logs(tree: Any) -> list[tuple[Pairs, list[Record]]] | None:
    """The resources of a request with logs, each with its records; ``None`` if it does not have the usual shape."""
    try:
        return [
            (common, [_record(record) for scope in scopes for record in _typed(scope, "logRecords", list)])
            for common, scopes in _resources(tree, "resourceLogs", "scopeLogs", "logRecords")
        ]
    except (_UnusualError, TypeError, AttributeError, KeyError):
        return None


def _resources(tree: Any, outer: str, inner: str, inmost: str) -> Iterator[tuple[Pairs, list[Any]]]:
    """The attributes of each resource, and its scopes."""
    _only(tree, (outer,))
    for each in _typed(tree, outer, list):
        _only(each, ("resource", inner, "schemaUrl"))
        _typed(each, "schemaUrl", str)
        resource, scopes = _typed(each, "resource", dict), _typed(each, inner, list)
        _only(resource, ("attributes",))
        for scope in scopes:
            _only(scope, ("scope", inmost, "schemaUrl"))
            _typed(scope, "schemaUrl", str)
            about = _typed(scope, "scope", dict)
            _only(about, ("name", "version", "attributes"))
            _typed(about, "name", str)
            _typed(about, "version", str)
            _attributes(_typed(about, "attributes", list))
        yield _attributes(_typed(resource, "attributes", list)), scopes


def _metric(metric: dict[str, Any]) -> list[Point] | dict[str, Any]:
    """The data points of a gauge or a sum; the metric itself if it is something else."""
    forms = metric.keys() - _METRIC
    if forms == {"gauge"}:
        data, kind = _typed(metric, "gauge", dict), "gauge"
        _only(data, ("dataPoints",))
    elif forms == {"sum"}:
        data = _typed(metric, "sum", dict)
        _only(data, _SUM)
        temporality, monotonic = data.get("aggregationTemporality", 0), data.get("isMonotonic", False)
        if type(temporality) not in (int, str) or type(monotonic) is not bool:
            raise _UnusualError
        counting = _TEMPORALITIES[temporality]
        kind = counting if monotonic else "gauge"
    else:
        return metric
    _typed(metric, "description", str)
    _typed(metric, "unit", str)
    name, points = metric.get("name", ""), []
    for point in _typed(data, "dataPoints", list):
        if not point.keys() <= _POINT:
            raise _UnusualError
        _nanoseconds(point, "startTimeUnixNano")
        time, flags = _nanoseconds(point, "timeUnixNano"), point.get("flags", 0)
        if type(flags) is not int or not 0 <= flags < 2**32:
            raise _UnusualError
        pairs = _attributes(point["attributes"]) if "attributes" in point else ()
        if "asDouble" in point:
            number = point["asDouble"]
            if (type(number) is not float and type(number) is not int) or "asInt" in point:
                raise _UnusualError
        elif "asInt" in point:
            number = _whole(point["asInt"])
        else:
            continue
        if not flags & NO_VALUE:
            points.append((name, kind, pairs, time, float(number)))
    return points


def _record(record: dict[str, Any]) -> Record:
    if not record.keys() <= _RECORD:
        raise _UnusualError
    time, observed = _nanoseconds(record, "timeUnixNano"), _nanoseconds(record, "observedTimeUnixNano")
    number, flags, body = record.get("severityNumber", 0), record.get("flags", 0), record.get("body", _NOTHING)
    if type(number) is str:
        number = _SEVERITIES[number]
    if type(number) is not int or not 0 <= number <= 24 or type(flags) is not int or not 0 <= flags < 2**32:
        raise _UnusualError
    if body and (len(body) > 1 or type(body["stringValue"]) is not str):
        raise _UnusualError
    for name in ("traceId", "spanId"):
        if name in record and not _HEX.fullmatch(record[name]):
            raise _UnusualError
    pairs = _attributes(record["attributes"]) if "attributes" in record else ()
    return pairs, body.get("stringValue", ""), time or observed, number, _typed(record, "severityText", str)


def _attributes(attributes: Any) -> Pairs:
    if type(attributes) is not list:
        raise _UnusualError
    pairs = []
    for attribute in attributes:
        key, value = attribute["key"], attribute["value"]
        if len(attribute) != 2 or len(value) != 1 or type(key) is not str:
            raise _UnusualError
        ((kind, content),) = value.items()
        if kind == "stringValue" and type(content) is str:
            pairs.append((key, content))
        elif kind == "intValue":
            pairs.append((key, str(_whole(content))))
        elif kind == "boolValue" and type(content) is bool:
            pairs.append((key, "true" if content else "false"))
        else:
            raise _UnusualError
    return tuple(pairs)


def _whole(number: Any) -> int:
    if type(number) is str and _WHOLE.fullmatch(number):
        return int(number)
    if type(number) is int and -(2**63) <= number < 2**63:
        return number
    raise _UnusualError


def _nanoseconds(fields: dict[str, Any], name: str) -> int:
    time = fields.get(name, 0)
    if type(time) is str and len(time) <= 19 and time.isascii() and time.isdigit():
        return int(time)
    if type(time) is int and time >= 0:
        return time
    raise _UnusualError


def _only(fields: dict[str, Any], names: Any) -> None:
    if not fields.keys() <= set(names):
        raise _UnusualError


def _typed(fields: dict[str, Any], name: str, kind: type[T]) -> T:
    """A field of a type; empty if it is not there."""
    value = fields[name] if name in fields else kind()
    if type(value) is not kind:
        raise _UnusualError
    return value
