"""What the console answers about the pipeline itself: its status, its health, and its metrics for Prometheus."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fastapi import APIRouter, Response
from fastapi.responses import JSONResponse
from prometheus_client import CONTENT_TYPE_LATEST

from dashboards.console.metrics import metrics_text
from dashboards.console.store import Store
from engine.clock import now_ms


def status_routes(store: Store, status: Callable[[], dict[str, Any]]) -> APIRouter:
    """The paths ``/api/status``, ``/health`` and ``/metrics``.

    Args:
        store: Where novelties are read; if it cannot be reached, the console is not healthy.
        status: The pipeline's status, asked at each request; empty where no pipeline runs in this process.
    """
    routes = APIRouter()

    @routes.get("/api/status")
    def pipeline_status() -> dict[str, Any]:
        return {"now": now_ms(), "pipeline": status()}

    @routes.get("/health")
    def health() -> JSONResponse:
        if problems := status().get("problems"):
            return JSONResponse({"status": "unavailable", "reasons": problems}, status_code=503)
        store.counts()  # unreachable: 503, by the app's handler of errors
        return JSONResponse({"status": "ok"})

    @routes.get("/metrics")
    def metrics() -> Response:
        return Response(metrics_text(status), media_type=CONTENT_TYPE_LATEST)

    return routes
