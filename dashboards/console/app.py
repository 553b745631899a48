"""The HTTP interface of the console. It returns data only; the page escapes it by writing text nodes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.middleware.gzip import GZipMiddleware
from fastapi.responses import FileResponse, JSONResponse
from fastapi.staticfiles import StaticFiles

from dashboards.console.access import Access, login_routes
from dashboards.console.action_routes import action_routes
from dashboards.console.actions import Actions
from dashboards.console.belief import Beliefs
from dashboards.console.budget import Promises
from dashboards.console.incident_routes import QUIET, incident_routes
from dashboards.console.novelty_routes import novelty_routes
from dashboards.console.own_page import own_page
from dashboards.console.rule_routes import rule_routes
from dashboards.console.search import REFUSED
from dashboards.console.series_routes import series_routes
from dashboards.console.site_routes import site_routes
from dashboards.console.speaking import Speaking
from dashboards.console.standing import Remembered
from dashboards.console.store import Store
from dashboards.console.trials import Trials
from dashboards.console.version_routes import version_routes
from dashboards.console.versions import Versions
from engine.spec.errors import NewnormalError
from pipelines.contracts.bounds import Bounds
from pipelines.serving.bodies import BodyLimit
from pipelines.serving.hosts import allowed

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
    "VERSION_UNKNOWN": 404, "VERSION_EMPTY": 404, "USAGE_INVALID": 400, "COMPARISON_BUSY": 409,
    "COMPARISON_FAILED": 500, "LOGIN_REQUIRED": 401, "TOKEN_WRONG": 401, "COMPARISON_ENDED": 500,
    "TRIAL_BUSY": 409, "TRIAL_SLOW": 503, "TRIAL_ENDED": 500,
}  # fmt: skip
"""The HTTP status of errors; of all others 503, as a server does not answer."""

_WITHOUT_BODY = ("GET", "HEAD", "OPTIONS")
_LEVEL = 4
"""Of gzip: a first view of half a megabyte goes out as a tenth of it, in a few milliseconds."""


def create_app(
    store: Store,
    status: Callable[[], dict[str, Any]] = dict,
    zone: str = "UTC",
    listening: str = "127.0.0.1",
    hosts: Collection[str] = (),
    actions: Actions | None = None,
    access: Access | None = None,
    beliefs: Beliefs | None = None,
    versions: Versions | None = None,
    quiet: int = QUIET,
    promises: Promises | None = None,
    trials: Trials | None = None,
    bounds: Bounds | None = None,
) -> FastAPI:
    """The console's application.

    Args:
        store: Where novelties are read.
        status: The pipeline's status (`PipelineStatus.to_dict`), asked at each request; empty: no pipeline here.
        zone: IANA name of the time zone in which explanations tell instants.
        listening: The address that the console listens on.
        hosts: Further names that it is reached by, see `pipelines.serving.hosts`.
        actions: Writes what operators say; ``None``: the console only shows.
        access: Decides who is answered; ``None``: who reaches a console without a token or a proxy, if any may.
        beliefs: What the detector believes; ``None``: nobody can be asked.
        versions: Lists and compares versions; ``None``: this console knows none.
        quiet: How long nothing is novel before an incident is resolved, milliseconds.
        promises: How few false alarms were promised; ``None``: nothing was.
        trials: Says what rules would have done; ``None``: this console tries none.
        bounds: The bounds of metrics; ``None``: those that are well known.
    """
    app = FastAPI(title="Newnormal console", docs_url=None, redoc_url=None, openapi_url=None)
    access = access or Access(listening)
    app.add_middleware(BodyLimit)
    _guard(app, listening, hosts, access)
    app.add_middleware(GZipMiddleware, compresslevel=_LEVEL)
    app.include_router(login_routes(access))
    standing, speaking, bounds = Remembered(actions), Speaking(actions, access), bounds or Bounds({})
    app.include_router(incident_routes(store.incidents, store.similar, store.heat, status, standing, quiet))
    app.include_router(novelty_routes(store, beliefs, bounds, zone))
    app.include_router(series_routes(store, beliefs, standing, bounds, zone))
    app.include_router(site_routes(store, beliefs, standing, bounds, promises, status))
    app.include_router(version_routes(versions))
    app.include_router(action_routes(store, speaking, standing))
    app.include_router(rule_routes(trials, speaking, standing))

    @app.get("/")
    def page() -> FileResponse:
        return FileResponse(PAGE / "index.html")

    app.mount("/page", StaticFiles(directory=PAGE), name="page")
    return app


def _guard(app: FastAPI, listening: str, hosts: Collection[str], access: Access) -> None:
    """Refuses wrong hosts and strangers, adds the security headers to all answers, and tells errors as JSON."""

    @app.middleware("http")
    async def harden(request: Request, call_next: Callable[[Request], Awaitable[Response]]) -> Response:
        host = request.headers.get("host", "")
        if not allowed(host, listening, hosts):
            response: Response = _wrong_host(host)
        elif not access.admits(request):
            response = _stranger(request, access)
        elif alien := _alien(request):
            response = _answer(alien)
        else:
            response = await call_next(request)
        if request.method not in _WITHOUT_BODY and response.status_code in (400, 401, 403):
            response.headers["Connection"] = "close"  # the body is not read
        response.headers.update(HEADERS)
        if not request.url.path.startswith("/page/"):
            response.headers["Cache-Control"] = "no-store"
        return response

    @app.exception_handler(NewnormalError)
    def unavailable(_request: Request, error: NewnormalError) -> JSONResponse:
        return _answer(error)

    @app.exception_handler(RequestValidationError)
    def wrong(_request: Request, error: RequestValidationError) -> JSONResponse:
        faults = [f"{'.'.join(map(str, each['loc'][1:]))}: {each['msg']}" for each in error.errors()]
        return _answer(NewnormalError("REQUEST_INVALID", "; ".join(faults), "request"))


def _alien(request: Request) -> NewnormalError | None:
    """The refusal of a request that another page than the console's may have sent; its body is not read."""
    if request.method in _WITHOUT_BODY:
        return None
    try:
        own_page(request)
    except NewnormalError as error:
        return error
    return None


def _answer(error: NewnormalError) -> JSONResponse:
    detail = f"{error.what}; accepted: {error.accepted}" if error.accepted else error.what
    return JSONResponse({"code": error.code, "detail": detail}, _STATUS.get(error.code, 503))


def _stranger(request: Request, access: Access) -> Response:
    """The page that asks for the token, or an error for a program."""
    headers = {"WWW-Authenticate": "Bearer"}
    if request.url.path == "/" and request.method == "GET":
        return FileResponse(PAGE / "login.html", 401, headers)
    refused = _answer(access.refusal())
    refused.headers.update(headers)
    return refused


def _wrong_host(host: str) -> JSONResponse:
    what = f"the console does not answer to {host[:300]!r}"
    return _answer(NewnormalError("HOST_REFUSED", what, "Host header", "localhost, or console.hosts"))
