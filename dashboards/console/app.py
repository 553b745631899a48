"""The console's HTTP interface. Everything it returns is data; all escaping is the page's, which writes text only."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Collection
from pathlib import Path
from typing import Annotated, Any

from fastapi import FastAPI, HTTPException, Query, Request, Response
from fastapi.responses import FileResponse, JSONResponse
from fastapi.staticfiles import StaticFiles
from prometheus_client import CONTENT_TYPE_LATEST

from dashboards.console.hosts import allowed
from dashboards.console.metrics import metrics_text
from dashboards.console.store import POINTS, REFUSED, Store
from engine.spec.errors import NewnormalError
from pipelines.contracts.explanations import explain
from pipelines.contracts.records.novelty import NoveltyKind

PAGE = Path(__file__).parent / "page"

HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'self'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}
"""A hostile name that got past the page's escaping still could not run: no inline script is allowed."""

_BEFORE, _AFTER = 90, 30  # windows shown around a novelty


_LAST = 4_102_444_800_000  # 2100
_LONGEST = 3_660 * 86_400_000  # ten years

Name = Annotated[str, Query(min_length=1, max_length=512)]
Time = Annotated[int, Query(ge=0, le=_LAST)]


def create_app(
    store: Store,
    status: Callable[[], dict[str, Any]] = dict,
    zone: str = "UTC",
    listening: str = "127.0.0.1",
    hosts: Collection[str] = (),
) -> FastAPI:
    """The console's application.

    Args:
        store: Where novelties are read.
        status: The pipeline's status (`PipelineStatus.to_dict`), asked at each request; empty: no pipeline here.
        zone: IANA name of the time zone in which explanations tell instants.
        listening: The address that the console listens on.
        hosts: Further names that it is reached by, see `dashboards.console.hosts`.
    """
    app = FastAPI(title="Newnormal console", docs_url=None, redoc_url=None, openapi_url=None)

    @app.middleware("http")
    async def harden(request: Request, call_next: Callable[[Request], Awaitable[Response]]) -> Response:
        host = request.headers.get("host", "")
        response = await call_next(request) if allowed(host, listening, hosts) else _stranger(host)
        response.headers.update(HEADERS)
        if request.url.path.startswith("/api/"):
            response.headers["Cache-Control"] = "no-store"
        return response

    @app.exception_handler(NewnormalError)
    def unavailable(_request: Request, error: NewnormalError) -> JSONResponse:
        return JSONResponse({"code": error.code, "detail": error.what}, 400 if error.code == REFUSED else 503)

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
        span = max(0, end - _BEFORE * width * zoom), min(_LAST, end + _AFTER * width * zoom)
        points = store.series(*place, *span)
        return {"now": _now(), "novelty": found, "explanation": explain(found, zone), "span": span, "series": points}

    @app.get("/api/series")
    def series(
        entity: Name, metric: Name, start: Time, end: Time, limit: Annotated[int, Query(ge=1, le=POINTS)] = POINTS
    ) -> dict[str, Any]:
        if not 0 <= end - start <= _LONGEST:
            raise HTTPException(422, "start lies after end, or more than ten years before it")
        return {"series": store.series(entity, metric, start, end, limit)}

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


def _stranger(host: str) -> JSONResponse:
    error = NewnormalError(
        "HOST_REFUSED", f"the console does not answer to {host[:300]!r}", "Host header", "localhost, or console.hosts"
    )
    return JSONResponse({"code": error.code, "detail": f"{error.what}; accepted: {error.accepted}"}, 400)


def _now() -> int:
    return int(time.time() * 1000)
