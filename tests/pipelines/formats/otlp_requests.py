"""Export requests of OTLP as the tests send them, built with the protocol's own classes."""

from __future__ import annotations

from typing import Any

from google.protobuf import json_format
from google.protobuf.message import Message
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest

from tests.pipelines.formats.examples_times import NS


def attributes(**values: str) -> list[dict[str, Any]]:
    return [{"key": name.replace("__", "."), "value": {"stringValue": value}} for name, value in values.items()]


def metrics(*found: dict[str, Any], resource: list[dict[str, Any]] | None = None) -> ExportMetricsServiceRequest:
    given = attributes(host__name="a", service__name="shop") if resource is None else resource
    scope = {"scope": {"name": "s"}, "metrics": list(found)}
    tree = {"resourceMetrics": [{"resource": {"attributes": given}, "scopeMetrics": [scope]}]}
    return json_format.ParseDict(tree, ExportMetricsServiceRequest())


def logs(*records: dict[str, Any]) -> ExportLogsServiceRequest:
    given = attributes(host__name="a", service__name="shop")
    tree = {"resourceLogs": [{"resource": {"attributes": given}, "scopeLogs": [{"logRecords": list(records)}]}]}
    return json_format.ParseDict(tree, ExportLogsServiceRequest())


def both(request: Message) -> tuple[bytes, bytes]:
    """The request in protobuf and in JSON."""
    return request.SerializeToString(), json_format.MessageToJson(request, indent=None).encode()


def gauge(name: str = "load", value: float = 0.5) -> dict[str, Any]:
    return {"name": name, "unit": "1", "gauge": {"dataPoints": [{"timeUnixNano": NS, "asDouble": value}]}}


def record(text: str = "no", **changed: Any) -> dict[str, Any]:
    return {"timeUnixNano": NS, "severityNumber": 17, "body": {"stringValue": text}} | changed


def braced(request: Message) -> bytes:
    """The request in protobuf with a longer attribute, so that its one resource has 123 bytes: this length is a brace.

    Args:
        request: A request whose one resource has fewer bytes.
    """
    (resource,) = next(iter(request.ListFields()))[1]
    attribute = resource.resource.attributes[1].value
    attribute.string_value += "x" * (ord("{") - resource.ByteSize())
    made = request.SerializeToString()
    assert made[:2] == b"\n{"
    return made
