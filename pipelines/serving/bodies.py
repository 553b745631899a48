"""Bounds the bodies of requests: they are read to the end, or refused, before anything parses them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from fastapi.responses import JSONResponse
from starlette.datastructures import Headers

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]

MOST = 64_000
"""The most bytes of a body; what people write in the console has a few kilobytes at most."""
_SECONDS = 10.0
"""Seconds in which a body must have arrived."""


class BodyLimit:
    """Refuses requests whose bodies are too large or too slow; it stands inside of what decides who is answered.

    Args:
        app: The application inside.
        most: The most bytes.
        seconds: In how many seconds a body must have arrived.
    """

    def __init__(self, app: Callable[..., Awaitable[None]], most: int = MOST, seconds: float = _SECONDS) -> None:
        self._app, self._most, self._seconds = app, most, seconds

    async def __call__(self, scope: Message, receive: Receive, send: Any) -> None:
        if scope["type"] != "http" or scope["method"] in ("GET", "HEAD"):
            await self._app(scope, receive, send)
            return
        announced = Headers(scope=scope).get("content-length", "0")
        try:
            if announced.isdigit() and int(announced[:20]) > self._most:
                raise _TooLargeError
            async with asyncio.timeout(self._seconds):
                body = await self._read(receive)
        except (_TooLargeError, TimeoutError) as error:
            slow = isinstance(error, TimeoutError)
            why = f"the body has not arrived within {self._seconds:g} s" if slow else f"more than {self._most} bytes"
            told = {"code": "BODY_REFUSED", "detail": f"{why}; accepted: a body of at most {self._most} bytes"}
            await JSONResponse(told, 408 if slow else 413, {"Connection": "close"})(scope, receive, send)
            return
        if body is None:
            return
        whole: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

        async def again() -> Message:
            return whole.pop() if whole else await receive()

        await self._app(scope, again, send)

    async def _read(self, receive: Receive) -> bytes | None:
        """The body; ``None`` if the client has gone."""
        body = bytearray()
        while True:
            message = await receive()
            if message["type"] != "http.request":
                return None
            body += message.get("body", b"")
            if len(body) > self._most:
                raise _TooLargeError
            if not message.get("more_body", False):
                return bytes(body)


class _TooLargeError(Exception):
    """The body has too many bytes."""
