"""What the HTTP interfaces of views share: who is answered, how errors are told, names in paths, pages."""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Awaitable, Callable, Collection, MutableMapping
from typing import Any
from urllib.parse import unquote_to_bytes

from fastapi import FastAPI, Request, Response
from fastapi.responses import JSONResponse
from starlette.datastructures import Headers, MutableHeaders

from engine.spec.errors import NewnormalError
from pipelines.contracts.setting_types import is_loopback
from pipelines.serving.hosts import allowed
from pipelines.serving.tokens import has_token

_STATUS = {
    "VIEW_SERIES_UNKNOWN": 404, "VIEW_ROW_UNKNOWN": 404, "VIEW_ELSEWHERE": 421, "VIEW_QUESTION": 400,
    "VIEW_HOST_REFUSED": 400, "VIEW_TOKEN_REQUIRED": 401,
}  # fmt: skip


def guarded(title: str, about: str, listening: str, hosts: Collection[str], token: str, reached: str) -> FastAPI:
    """An application without answers yet; the last arguments are those of `pipelines.query.view.app.create_app`."""
    app = FastAPI(title=title, description=about, version="1", docs_url=None, redoc_url=None)
    closed = bool(token) or not is_loopback(reached)
    app.add_middleware(_Guarded, listening=listening, hosts=hosts, token=token if closed else None)
    app.add_exception_handler(NewnormalError, _refused)
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


def decoded(name: str) -> str:
    """A name in a path.

    Raises:
        NewnormalError: ``VIEW_QUESTION`` if it is no UTF-8.
    """
    try:
        return unquote_to_bytes(name.encode("latin-1")).decode("utf-8")
    except UnicodeError:
        raise NewnormalError("VIEW_QUESTION", "a name is no UTF-8", "path", "percent-encoded UTF-8") from None


def following(end: bytes | None) -> str | None:
    """The text for where a page ends."""
    return urlsafe_b64encode(end).decode() if end else None


def cursor(text: str) -> bytes:
    """The inverse of `following`.

    Raises:
        NewnormalError: ``VIEW_QUESTION`` if the text comes from nowhere else.
    """
    try:
        return urlsafe_b64decode(text.encode("ascii"))
    except ValueError:
        raise NewnormalError(
            "VIEW_QUESTION", "after is no `next` of a page", "after", "`next` of the page before"
        ) from None
