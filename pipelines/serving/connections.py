"""How every web server of the project treats connections, so that those that send nothing hinder nobody.

A connection whose client is waited for is closed after some seconds, whatever it drips. There are so many connections
at most that the process keeps most of its file descriptors for other things; when one more comes, the one is closed
whose client has been waited for the longest.
"""

from __future__ import annotations

import asyncio
import resource
import time
from typing import Any

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

_MOST = 256
_MOST_CHUNKS = 2_500
"""The most pieces of a body. Each takes 20 µs in which nobody else is served; 4 MB in pieces of 4 kB are 1,000."""
_HEADER_SECONDS, _BODY_SECONDS = 10.0, 40.0
"""Seconds that a client may take to send the head of a request, and a body; a server may allow less for the latter."""


def most_connections() -> int:
    """The most connections of a server: a quarter of the file descriptors that the process may have, at most 256."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _MOST if soft == resource.RLIM_INFINITY else max(16, min(_MOST, soft // 4))


def configuration(app: Any, grace: int, lifespan: str = "auto") -> uvicorn.Config:
    """The configuration of a server.

    Args:
        app: The application.
        grace: Seconds that requests under way get when it ends.
        lifespan: Whether the application is told of begin and end, see `uvicorn.Config`.
    """
    most = most_connections()
    return uvicorn.Config(
        app,
        http=_Connection,
        ws="none",
        lifespan=lifespan,  # type: ignore[arg-type]
        log_level="warning",
        access_log=False,
        timeout_graceful_shutdown=grace,
        backlog=min(128, most // 2),  # so many are accepted at once, before one can be closed again
        # who asks is who is connected: a header could name another address, which `console.proxies` would then believe
        proxy_headers=False,
    )


class _Connection(H11Protocol):
    """A connection that is closed if its client is waited for too long."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._phase: tuple[int, Any] = (-1, None)
        self._requests = 0
        self._timer: asyncio.TimerHandle | None = None
        self._chunks, self._next_event = 0, self.conn.next_event
        self.conn.next_event = self._counted  # type: ignore[method-assign]
        self.since = time.monotonic()

    @property
    def waits(self) -> bool:
        """Whether the client has to send something."""
        return self.conn.their_state in (h11.IDLE, h11.SEND_BODY)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._look()
        if len(self.connections) > most_connections():
            waiting = [each for each in self.connections if isinstance(each, _Connection) and each.waits]
            oldest = min(waiting, key=lambda each: each.since, default=self)
            self.connections.discard(oldest)
            oldest.transport.abort()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._look()

    def on_response_complete(self) -> None:
        self._requests += 1
        super().on_response_complete()
        self._look()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._timer:
            self._timer.cancel()
        super().connection_lost(exc)

    def _counted(self) -> Any:
        """The next event of the request; one with very many pieces is refused with 400, or cut off after an answer."""
        event = self._next_event()
        if isinstance(event, h11.Request):
            self._chunks = 0
        elif isinstance(event, h11.Data):
            self._chunks += 1
            if self._chunks > _MOST_CHUNKS:
                if self.conn.our_state is h11.SEND_RESPONSE:
                    raise h11.RemoteProtocolError("the body comes in too many pieces")
                self.transport.abort()
                return h11.NEED_DATA
        return event

    def _look(self) -> None:
        """Sets the time until which the client is waited for, when something else is waited for than before."""
        phase = (self._requests, self.conn.their_state)
        if phase == self._phase:
            return
        self._phase, self.since = phase, time.monotonic()
        if self._timer:
            self._timer.cancel()
            self._timer = None
        if self.waits:
            seconds = _HEADER_SECONDS if self.conn.their_state is h11.IDLE else _BODY_SECONDS
            self._timer = self.loop.call_later(seconds, self.transport.abort)
