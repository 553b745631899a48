"""The addresses of the gateway."""

from __future__ import annotations

import asyncio
from concurrent.futures import Executor
from http import HTTPStatus

from fastapi import FastAPI, Request, Response
from fastapi.responses import JSONResponse
from prometheus_client import CONTENT_TYPE_LATEST

from pipelines.contracts.settings import Settings
from pipelines.formats.rules import Rules
from pipelines.gateway.access import Access
from pipelines.gateway.changes import Annotations, Changes
from pipelines.gateway.handling import Handler
from pipelines.gateway.influx import Influx
from pipelines.gateway.otlp import LOGS, METRICS, Otlp
from pipelines.gateway.protocol import NotTakenError, Protocol
from pipelines.gateway.pushed_json import (
    Datadog,
    Firehose,
    Gelf,
    OpenTsdb,
    Sketches,
    Splunk,
    SplunkAcknowledgements,
    SplunkRaw,
)
from pipelines.gateway.remote_write import RemoteWrite
from pipelines.gateway.traces import Traces
from pipelines.gateway.writer import Writer


def create_app(settings: Settings, writer: Writer, token: str, pool: Executor) -> FastAPI:
    """The application.

    Args:
        settings: Limits, rules of labels, the namespace.
        writer: Writes to Kafka.
        token: What senders must know; empty: there is none.
        pool: Threads that check bodies.
    """
    app = FastAPI(title="Newnormal gateway", docs_url=None, redoc_url=None, openapi_url=None)
    access = Access(settings.gateway.reached, token)
    handler = Handler(settings, writer, access, pool)
    app.state.metrics = handler.metrics
    rules = Rules.of(settings.input)
    influx, datadog, splunk = Influx(rules), Datadog(rules), Splunk(rules)
    pushed: dict[str, Protocol] = {
        "/api/v1/write": RemoteWrite(rules.labels),
        "/v1/metrics": Otlp(METRICS, rules),
        "/v1/logs": Otlp(LOGS, rules),
        "/v1/traces": Traces(),
        "/api/v2/write": influx,
        "/write": influx,
        "/api/v1/series": datadog,
        "/api/v2/series": datadog,
        "/services/collector": splunk,
        "/services/collector/event": splunk,
        "/services/collector/event/1.0": splunk,
        "/services/collector/raw": SplunkRaw(rules),
        "/services/collector/raw/1.0": SplunkRaw(rules),
        "/services/collector/ack": SplunkAcknowledgements(rules),
        "/gelf": Gelf(rules),
        "/api/put": OpenTsdb(rules),
        "/api/beta/sketches": Sketches(rules),
        "/firehose": Firehose(rules),
        "/events": Changes(settings),
        "/api/annotations": Annotations(settings),
    }
    for path, protocol in pushed.items():
        _add(app, path, protocol, handler)

    @app.api_route("/ping", methods=["GET", "HEAD"])
    async def ping() -> Response:
        return Response(status_code=HTTPStatus.NO_CONTENT)

    @app.get("/api/v1/validate")
    async def validate(request: Request) -> Response:
        try:
            access.check(request.headers)
        except NotTakenError as error:
            return JSONResponse({"errors": [error.text]}, HTTPStatus.FORBIDDEN)
        return JSONResponse({"valid": True})

    @app.options("/services/collector/event/1.0")
    async def verify() -> Response:  # Docker's driver asks so whether there is a collector, without its token
        return Response()

    @app.get("/services/collector/health/1.0")
    @app.get("/services/collector/health")
    @app.get("/health")
    async def health() -> Response:
        well = await asyncio.to_thread(writer.well)
        answer = {"status": "pass"} if well else {"status": "fail", "message": "Kafka does not answer"}
        return JSONResponse(answer, HTTPStatus.OK if well else HTTPStatus.SERVICE_UNAVAILABLE)

    @app.get("/metrics")
    async def metrics(request: Request) -> Response:
        try:
            access.check(request.headers)
            access.check_host(request.headers)
        except NotTakenError as error:
            return Response(error.text, error.status)
        return Response(handler.metrics.page(), media_type=CONTENT_TYPE_LATEST)

    return app


def _add(app: FastAPI, path: str, protocol: Protocol, handler: Handler) -> None:
    @app.post(path)
    async def push(request: Request) -> Response:
        return await handler.handle(request, protocol)
