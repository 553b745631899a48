"""Traces that OpenTelemetry's SDK pushes say which service calls which; what is no request of traces is refused."""

from __future__ import annotations

import httpx
import pytest
from google.protobuf import json_format
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.trace import SpanKind, set_span_in_context

from engine.spec.decoder import Messages
from pipelines.contracts.settings import Settings
from pipelines.formats.placements.spans import Span, SpansDecoder
from pipelines.jobs.calls.logic import found_calls
from tests.pipelines.gateway.broker import messages

pytestmark = pytest.mark.servers


def test_the_sdk_of_opentelemetry_pushes_spans_from_which_calls_are_found(gateway: httpx.Client, own: Settings) -> None:
    url, providers = f"{str(gateway.base_url).rstrip('/')}/v1/traces", {}
    for service in ("web", "cart"):
        resource = Resource({"k8s.namespace.name": "shop", "k8s.deployment.name": service, "service.name": service})
        providers[service] = TracerProvider(resource=resource)
        exporter = OTLPSpanExporter(url, compression=Compression.Gzip, timeout=60)
        providers[service].add_span_processor(SimpleSpanProcessor(exporter))
    web, cart = (providers[name].get_tracer("t") for name in ("web", "cart"))
    request = web.start_span("GET /", kind=SpanKind.SERVER)
    asks = web.start_span("GET cart", set_span_in_context(request), SpanKind.CLIENT)
    answer = cart.start_span("GET /cart", set_span_in_context(asks), SpanKind.SERVER)
    query = cart.start_span("SELECT", set_span_in_context(answer), SpanKind.CLIENT)
    query.set_attribute("server.address", "db-1.example.com")
    for span in (query, answer, asks, request):
        span.end()
    for provider in providers.values():
        provider.shutdown()
    values = messages(own, Span)
    rows = SpansDecoder().decode(Messages.of(values)).records.to_pylist()
    assert len(rows) == 4 and len({row["trace"] for row in rows}) == 1
    found = found_calls([(row["span"], row["parent"], row["service"], row["peer"]) for row in rows])
    assert found == [("shop/cart", "db-1.example.com"), ("shop/web", "shop/cart")]


@pytest.mark.parametrize("kind", ["application/x-protobuf", "application/json"])
def test_a_request_is_taken_as_it_is_and_an_empty_or_broken_one_writes_nothing(
    gateway: httpx.Client, own: Settings, kind: str
) -> None:
    made = ExportTraceServiceRequest()
    made.resource_spans.add().scope_spans.add().spans.add(name="x")
    as_json = kind.endswith("json")

    def push(request: ExportTraceServiceRequest) -> httpx.Response:
        body = json_format.MessageToJson(request).encode() if as_json else request.SerializeToString()
        return gateway.post("/v1/traces", content=body, headers={"Content-Type": kind})

    answer = push(made)
    assert (answer.status_code, answer.headers["content-type"]) == (200, kind)
    assert as_json or ExportTraceServiceResponse.FromString(answer.content) == ExportTraceServiceResponse()
    assert push(ExportTraceServiceRequest()).status_code == 200
    assert gateway.post("/v1/traces", content=b"no", headers={"Content-Type": kind}).status_code == 400
    assert gateway.post("/v1/traces", content=b"no", headers={"Content-Type": "text/plain"}).status_code == 415
    assert len(messages(own, Span)) == 1
