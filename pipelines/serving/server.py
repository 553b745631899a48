"""Serves a web application in a thread of this process."""

from __future__ import annotations

import socket
import threading

import uvicorn
from fastapi import FastAPI

from engine.spec.errors import NewnormalError
from pipelines.serving.connections import configuration

_TRIES = 20


class _Uvicorn(uvicorn.Server):
    """A server that says when it is ready, or that it never will be."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.ready = threading.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.ready.set()


class WebServer:
    """A web application that is being served; `stop` ends it.

    Args:
        app: The application.
        listener: The socket; closed at the end.
        grace: Seconds that requests under way get when it ends.
    """

    def __init__(self, app: FastAPI, listener: socket.socket, grace: int = 3) -> None:
        self.url = address(listener)
        self._uvicorn = _Uvicorn(configuration(app, grace))
        self._listener = listener
        self._thread = threading.Thread(target=self._run, name="web", daemon=True)
        self._thread.start()
        self._uvicorn.ready.wait()

    def stop(self) -> None:
        """Ends the server; returns when it has ended."""
        self._uvicorn.should_exit = True
        self._thread.join()
        self._listener.close()

    def join(self) -> None:
        """Waits until the server ends."""
        self._thread.join()

    def _run(self) -> None:
        try:
            self._uvicorn.run(sockets=[self._listener])
        finally:
            self._uvicorn.ready.set()


def serve(app: FastAPI, host: str = "127.0.0.1", port: int = 8880) -> WebServer:
    """Serves the app at ``port``, or the next free one when it is taken; returns when it answers.

    Raises:
        NewnormalError: ``PORT_TAKEN`` if none of the next ports is free or the address is not ours.
    """
    return WebServer(app, listening(host, port))


def address(listener: socket.socket) -> str:
    """The URL at which a browser on this machine reaches a socket."""
    host, port = listener.getsockname()[:2]
    shown = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, f"[{host}]" if ":" in host else host)
    return f"http://{shown}:{port}"


def listening(host: str, port: int, setting: str = "console") -> socket.socket:
    """A socket that listens at ``port``, or the next free one when it is taken.

    Args:
        host: The address.
        port: The port; 0: any.
        setting: The section of the settings that names them.

    Raises:
        NewnormalError: ``PORT_TAKEN`` if none of the next ports is free or the address is not ours.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    for candidate in range(port, min(port + _TRIES, 65_536)) if port else [0]:
        try:
            listener = socket.create_server((host, candidate), family=family, backlog=128)
            listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # else each answer waits 40 ms for an ACK
            return listener
        except OSError as error:
            last = error
    raise NewnormalError(
        "PORT_TAKEN",
        f"cannot listen at {host}:{port}: {last}",
        f"{setting}.host, {setting}.port",
        "a free port of this machine",
    )
