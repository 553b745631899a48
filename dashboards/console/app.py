"""The console's HTTP interface. Everything it returns is data; all escaping is the page's, which writes text only."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Annotated, Any

from fastapi import FastAPI, HTTPException, Query, Request, Response
from fastapi.responses import FileResponse, JSONResponse
from fastapi.staticfiles import StaticFiles
from prometheus_client import CONTENT_TYPE_LATEST

from dashboards.console.metrics import metrics_text
from dashboards.console.store import Store
from engine.errors import NewnormalError
from pipelines.records.novelty import NoveltyKind
from pipelines.words import explain

PAGE = Path(__file__).parent / "page"

HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'self'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}
"""A hostile name that got past the page's escaping still could not run: no inline script is allowed."""

_BEFORE, _AFTER = 90, 30  # windows shown around a novelty


def create_app(store: Store, status: Callable[[], dict[str, Any]] = dict, zone: str = "UTC") -> FastAPI:
    """The console's application.

    Args:
        store: Where novelties are read.
        status: The pipeline's status (`PipelineStatus.to_dict`), asked at each request; empty: no pipeline here.
        zone: IANA name of the time zone in which explanations tell instants.
    """
    app = FastAPI(title="Newnormal console", docs_url=None, redoc_url=None, openapi_url=None)

    @app.middleware("http")
    async def harden(request: Request, call_next: Callable[[Request], Awaitable[Response]]) -> Response:
        response = await call_next(request)
        response.headers.update(HEADERS)
        if request.url.path.startswith("/api/"):
            response.headers["Cache-Control"] = "no-store"
        return response

    @app.exception_handler(NewnormalError)
    def unavailable(_request: Request, error: NewnormalError) -> JSONResponse:
        return JSONResponse({"code": error.code, "detail": error.what}, status_code=503)

    @app.get("/api/status")
    def pipeline_status() -> dict[str, Any]:
        return {"now": _now(), "pipeline": status()}

    @app.get("/api/novelties")
    def novelties(
        kind: Annotated[list[NoveltyKind] | None, Query()] = None,
        entity: Annotated[str, Query(max_length=512)] = "",
        min_score: Annotated[float, Query(ge=0, le=100)] = 0.0,
        limit: Annotated[int, Query(ge=1, le=1_000)] = 100,
    ) -> dict[str, Any]:
        return {
            "now": _now(),
            "novelties": store.newest(kind or (), entity, min_score, limit),
            "counts": store.counts(),
        }

    @app.get("/api/novelty")
    def novelty(
        id: Annotated[str, Query(max_length=512)], zoom: Annotated[int, Query(ge=1, le=256)] = 1
    ) -> dict[str, Any]:
        found = store.one(id)
        if found is None:
            raise HTTPException(404, "there is no such novelty")
        end, place = found["@timestamp"], (found["host.name"], found["metric"])
        width = max(1, end - found["window_start"], store.pace(*place, end))
        span = end - _BEFORE * width * zoom, end + _AFTER * width * zoom
        points = store.series(*place, *span)
        return {"now": _now(), "novelty": found, "explanation": explain(found, zone), "span": span, "series": points}

    @app.get("/api/series")
    def series(entity: str, metric: str, start: int, end: int) -> dict[str, Any]:
        return {"series": store.series(entity, metric, start, end)}

    @app.get("/api/entities")
    def entities() -> dict[str, Any]:
        return {"entities": store.entities()}

    @app.get("/health")
    def health() -> JSONResponse:
        if problems := status().get("problems"):
            return JSONResponse({"status": "unavailable", "reasons": problems}, status_code=503)
        store.counts()  # unreachable: 503, by the handler above
        return JSONResponse({"status": "ok"})

    @app.get("/metrics")
    def metrics() -> Response:
        return Response(metrics_text(status), media_type=CONTENT_TYPE_LATEST)

    @app.get("/")
    def page() -> FileResponse:
        return FileResponse(PAGE / "index.html")

    app.mount("/page", StaticFiles(directory=PAGE), name="page")
    return app


def _now() -> int:
    return int(time.time() * 1000)
