"""The HTTP interface of the console. It returns data only; the page escapes it by writing text nodes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, JSONResponse
from fastapi.staticfiles import StaticFiles

from dashboards.console.action_routes import action_routes
from dashboards.console.actions import Actions
from dashboards.console.belief import AskView
from dashboards.console.hosts import allowed
from dashboards.console.incident_routes import incident_routes
from dashboards.console.novelty_routes import novelty_routes
from dashboards.console.search import REFUSED
from dashboards.console.series_routes import series_routes
from dashboards.console.status_routes import status_routes
from dashboards.console.store import Store
from engine.spec.errors import NewnormalError

PAGE = Path(__file__).parent / "page"

HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'self'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}
"""No inline script is allowed, so that a hostile name could not run even if the page did not escape it."""


_STATUS = {
    REFUSED: 400, "HOST_REFUSED": 400, "REQUEST_INVALID": 422, "ACTION_REFUSED": 403, "LABEL_INVALID": 400,
    "RULE_INVALID": 400, "ACKNOWLEDGEMENT_INVALID": 400, "TIME_AHEAD": 400, "TIME_TOO_EARLY": 400,
    "RULE_UNKNOWN": 404, "INCIDENT_UNKNOWN": 404, "INCIDENT_OVER": 409,
}  # fmt: skip
"""The HTTP status of errors; of all others 503, as a server does not answer."""


def create_app(
    store: Store,
    status: Callable[[], dict[str, Any]] = dict,
    zone: str = "UTC",
    listening: str = "127.0.0.1",
    hosts: Collection[str] = (),
    actions: Actions | None = None,
    user_header: str = "",
    view: AskView | None = None,
) -> FastAPI:
    """The console's application.

    Args:
        store: Where novelties are read.
        status: The pipeline's status (`PipelineStatus.to_dict`), asked at each request; empty: no pipeline here.
        zone: IANA name of the time zone in which explanations tell instants.
        listening: The address that the console listens on.
        hosts: Further names that it is reached by, see `dashboards.console.hosts`.
        actions: Writes what operators say; ``None``: the console only shows.
        user_header: See `action_routes`.
        view: Asks the state view; ``None``: nobody does.
    """
    app = FastAPI(title="Newnormal console", docs_url=None, redoc_url=None, openapi_url=None)
    _guard(app, listening, hosts)
    app.include_router(incident_routes(store.incidents))
    app.include_router(novelty_routes(store, zone))
    app.include_router(series_routes(store, view, zone))
    app.include_router(status_routes(store, status))
    app.include_router(action_routes(store, actions, listening, user_header))

    @app.get("/")
    def page() -> FileResponse:
        return FileResponse(PAGE / "index.html")

    app.mount("/page", StaticFiles(directory=PAGE), name="page")
    return app


def _guard(app: FastAPI, listening: str, hosts: Collection[str]) -> None:
    """Refuses requests to a strange host, adds the security headers to all answers, and tells errors as JSON."""

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
        return _answer(error)

    @app.exception_handler(RequestValidationError)
    def wrong(_request: Request, error: RequestValidationError) -> JSONResponse:
        faults = [f"{'.'.join(map(str, each['loc'][1:]))}: {each['msg']}" for each in error.errors()]
        return _answer(NewnormalError("REQUEST_INVALID", "; ".join(faults), "request"))


def _answer(error: NewnormalError) -> JSONResponse:
    detail = f"{error.what}; accepted: {error.accepted}" if error.accepted else error.what
    return JSONResponse({"code": error.code, "detail": detail}, _STATUS.get(error.code, 503))


def _stranger(host: str) -> JSONResponse:
    what = f"the console does not answer to {host[:300]!r}"
    return _answer(NewnormalError("HOST_REFUSED", what, "Host header", "localhost, or console.hosts"))
