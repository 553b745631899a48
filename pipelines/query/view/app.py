"""The HTTP interface of the view: states, last windows, the most abnormal series, counts; described by OpenAPI."""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Awaitable, Callable, Collection, MutableMapping, Sequence
from typing import Annotated, Any
from urllib.parse import unquote_to_bytes

import orjson
from fastapi import FastAPI, Query, Request, Response
from fastapi.responses import JSONResponse, RedirectResponse
from starlette.datastructures import Headers, MutableHeaders

from engine.spec.errors import NewnormalError
from pipelines.contracts.setting_types import is_loopback
from pipelines.query.view.answers import NEEDED, Answers
from pipelines.query.view.client import MOST
from pipelines.serving.hosts import allowed
from pipelines.serving.tokens import has_token

_STATUS = {
    "VIEW_SERIES_UNKNOWN": 404, "VIEW_ELSEWHERE": 421, "VIEW_QUESTION": 400, "VIEW_HOST_REFUSED": 400,
    "VIEW_TOKEN_REQUIRED": 401,
}  # fmt: skip
_ABOUT = (
    "What the detector believes of each series, and the last windows of each. Names in a path are percent-encoded, "
    "a slash as %2F; they may be in the query instead (/state?entity=..&metric=..). `age` says how old an answer is."
)
Entity = Annotated[str, Query(description="the machine")]
Metric = Annotated[str, Query(description="the metric; _machine: all metrics of the machine together")]
Number = Annotated[int, Query(ge=1, le=MOST, description="how many windows at most")]


def create_app(
    view: Answers,
    promoted: Callable[[], str | None] = lambda: None,
    peers: Sequence[str] = (),
    listening: str = "127.0.0.1",
    hosts: Collection[str] = (),
    token: str = "",
    reached: str = "127.0.0.1",
) -> FastAPI:
    """The application.

    Args:
        view: What answers.
        promoted: Gives the name of the version that readers see; ``None``: not known.
        peers: The URLs of the processes of all parts, in order; empty: not known.
        listening: The address that it listens on.
        hosts: Further names that it is reached by, see `pipelines.serving.hosts`.
        token: What who asks must know; empty: nothing, so that nobody is answered where others reach the view.
        reached: The address that decides who reaches it.
    """
    app = FastAPI(title="Newnormal state view", description=_ABOUT, version="1", docs_url=None, redoc_url=None)
    closed = bool(token) or not is_loopback(reached)
    app.add_middleware(_Guarded, listening=listening, hosts=hosts, token=token if closed else None)
    app.add_exception_handler(NewnormalError, _refused)

    def answered(answer: dict[str, Any], entity: str | None = None) -> Response:
        shown = promoted()
        age: dict[str, Any] = view.age(entity) | {"version": view.settings.version}
        if shown and shown != view.settings.version:
            age |= {"promoted": shown, "restart": f"readers see {shown} now: restart the view"}
        whole = orjson.dumps({**answer, "age": age, "part": str(view.part)})
        return Response(whole, media_type="application/json")

    def elsewhere(entity: str, request: Request) -> Response | None:
        """The answer for a machine that another process owns."""
        partition = view.partition(entity)
        if view.part.owns(partition):
            return None
        owner = partition % view.part.of
        if len(peers) == view.part.of:
            query = f"?{request.url.query}" if request.url.query else ""
            return RedirectResponse(peers[owner].rstrip("/") + request.scope["path"] + query, 307)
        what = f"part {owner + 1}/{view.part.of} has this machine; this process has part {view.part}"
        raise NewnormalError("VIEW_ELSEWHERE", what, "newnormal view --peer", "the URL of that part")

    def state_of(entity: str, metric: str, request: Request) -> Response:
        if answer := elsewhere(entity, request):
            return answer
        state = view.state(entity, metric)
        if state is None:
            raise _unknown(entity, metric)
        return answered({"state": state}, entity)

    def windows_of(entity: str, metric: str, n: int, request: Request) -> Response:
        if answer := elsewhere(entity, request):
            return answer
        windows = view.windows(entity, metric, n)
        if not windows:
            raise _unknown(entity, metric)
        return answered({"windows": windows, "needed": NEEDED}, entity)

    @app.get("/state/{entity}/{metric}", summary="what is believed of a series")
    async def state(entity: str, metric: str, request: Request) -> Response:
        return state_of(_decoded(entity), _decoded(metric), request)

    @app.get("/state", summary="the same, with names in the query")
    async def state_by_query(entity: Entity, metric: Metric, request: Request) -> Response:
        return state_of(entity, metric, request)

    @app.get("/windows/{entity}/{metric}", summary="the last windows of a series, with the verdicts known on them")
    async def windows(entity: str, metric: str, request: Request, n: Number = 60) -> Response:
        return windows_of(_decoded(entity), _decoded(metric), n, request)

    @app.get("/windows", summary="the same, with names in the query")
    async def windows_by_query(entity: Entity, metric: Metric, request: Request, n: Number = 60) -> Response:
        return windows_of(entity, metric, n, request)

    @app.get("/states", summary="the states of a machine's series, or of machines whose names begin with a text")
    async def states(
        request: Request,
        entity: Annotated[str, Query(description="exactly this machine")] = "",
        prefix: Annotated[str, Query(description="machines whose names begin so; empty: all")] = "",
        after: Annotated[str, Query(description="`next` of the page before")] = "",
        limit: Annotated[int, Query(ge=1, le=MOST)] = 100,
    ) -> Response:
        if entity and (answer := elsewhere(entity, request)):
            return answer
        states, end = view.range(entity or prefix, bool(entity), _cursor(after), limit)
        following = urlsafe_b64encode(end).decode() if end else None
        return answered({"states": states, "next": following}, entity or None)

    @app.get("/top", summary="the most abnormal series now, the highest score first")
    async def top(k: Annotated[int, Query(ge=1, le=MOST)] = 10) -> Response:
        return answered({"states": view.top(k)})

    @app.get("/counts", summary="how many series there are, by kind of their last verdict")
    async def counts() -> Response:
        return answered({"counts": view.counts()})

    @app.get("/site", summary="how many machines report, which are still learned, and until when there are data")
    async def site() -> Response:
        return answered(view.site())

    @app.get("/machines", summary="names of the machines")
    async def machines(limit: Annotated[int, Query(ge=1, le=MOST)] = 1_000) -> Response:
        return answered({"machines": view.machines(limit)})

    @app.get("/machine", summary="the series of a machine, each with its last state and its last windows")
    async def machine(entity: Entity, request: Request, limit: Annotated[int, Query(ge=1, le=1_000)] = 100) -> Response:
        if answer := elsewhere(entity, request):
            return answer
        return answered({"series": view.machine(entity, limit)}, entity)

    @app.get("/health", summary="how far the view has read, and whether it must be restarted")
    async def health() -> Response:
        beat = view.heartbeat()
        read = {"messages": beat.messages, "refused": beat.refused}
        return answered({"partitions": view.own_partitions(), "of": view.partitions, **read})

    return app


class _Guarded:
    """Refuses requests for other hosts or without the token, and matches paths as they were sent.

    So an encoded slash does not end a name. It is plain ASGI, as a middleware of FastAPI would start a task for each
    request.
    """

    def __init__(
        self, app: Callable[..., Awaitable[None]], listening: str, hosts: Collection[str], token: str | None
    ) -> None:
        self._app, self._listening, self._hosts, self._token = app, listening, hosts, token

    async def __call__(self, scope: MutableMapping[str, Any], receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def answer(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                more = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}
                MutableHeaders(scope=message).update(more)
            await send(message)

        headers = Headers(scope=scope)
        host = headers.get("host", "")
        if not allowed(host, self._listening, self._hosts):
            what = f"the view does not answer to {host[:300]!r}"
            error = NewnormalError("VIEW_HOST_REFUSED", what, "Host header", "localhost, or view.hosts")
            await _refusal(error)(scope, receive, answer)
        elif self._token is not None and not self._knows(headers.get("authorization", "")):
            accepted = "the header Authorization: Bearer TOKEN, with the token of view.token_file"
            error = NewnormalError("VIEW_TOKEN_REQUIRED", "the view does not know who asks", "state view", accepted)
            refused = _refusal(error)
            refused.headers["WWW-Authenticate"] = "Bearer"
            await refused(scope, receive, answer)
        else:
            path = scope.get("raw_path", scope["path"].encode()).decode("latin-1")
            await self._app({**scope, "path": path}, receive, answer)

    def _knows(self, authorization: str) -> bool:
        return bool(self._token) and has_token(authorization, self._token or "")


async def _refused(_request: Request, error: Exception) -> Response:
    assert isinstance(error, NewnormalError)
    return _refusal(error)


def _refusal(error: NewnormalError) -> JSONResponse:
    detail = f"{error.what}; accepted: {error.accepted}" if error.accepted else error.what
    return JSONResponse({"code": error.code, "detail": detail}, _STATUS.get(error.code, 503))


def _unknown(entity: str, metric: str) -> NewnormalError:
    what = f"nothing is known of metric {metric!r} of {entity!r}"
    return NewnormalError(
        "VIEW_SERIES_UNKNOWN", what, "view", "a series that the detector has judged; /states lists them"
    )


def _decoded(name: str) -> str:
    try:
        return unquote_to_bytes(name.encode("latin-1")).decode("utf-8")
    except UnicodeError:
        raise NewnormalError("VIEW_QUESTION", "a name is no UTF-8", "path", "percent-encoded UTF-8") from None


def _cursor(text: str) -> bytes:
    try:
        return urlsafe_b64decode(text.encode("ascii"))
    except ValueError:
        raise NewnormalError(
            "VIEW_QUESTION", "after is no `next` of a page", "after", "`next` of the page before"
        ) from None
