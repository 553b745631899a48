"""OTLP over HTTP: traces, in protobuf and in JSON, of which the pipeline reads which service calls which."""

from __future__ import annotations

from http import HTTPStatus

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

from pipelines.contracts import topics
from pipelines.formats import parts
from pipelines.gateway.otlp import is_json_body, read_body, refusal_of, reply_of
from pipelines.gateway.protocol import Body, NotTakenError, Protocol, Reply, Taken


class Traces(Protocol):
    """The protocol for traces. A well-formed request is taken as a whole, as no span can be wrong by itself."""

    name = "otlp_traces"

    def parts(self, body: Body, most: int) -> int:
        if is_json_body(body):
            return parts.of_json(body.data, most)
        return parts.of_protobuf(body.data, ExportTraceServiceRequest.DESCRIPTOR, most) or 0

    def take(self, body: Body) -> Taken:
        request, data = read_body(body, ExportTraceServiceRequest)
        spans = sum(len(scope.spans) for resource in request.resource_spans for scope in resource.scope_spans)
        reply = reply_of(HTTPStatus.OK, ExportTraceServiceResponse(), is_json_body(body))
        return Taken(topics.TRACES_AGENTS, data if spans else None, spans, reply)

    def refusal(self, error: NotTakenError, content_type: str) -> Reply:
        return refusal_of(error, content_type)
