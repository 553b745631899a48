"""Runs a view in two processes: this one reads the topics, another answers over HTTP from the same database.

In one process the thread that answers would wait for Python's global lock while the other stores messages.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import structlog
import uvicorn
from fastapi import FastAPI

from engine.spec.errors import NewnormalError
from pipelines.contracts.settings import Settings
from pipelines.query.view.answers import Answers
from pipelines.query.view.app import create_app
from pipelines.query.view.database import Database
from pipelines.query.view.follower import Follower
from pipelines.query.view.part import Part
from pipelines.query.view.rows import Rows
from pipelines.query.view.rows_app import create_rows_app
from pipelines.serving.connections import configuration
from pipelines.versions.promotion import shown_version

_LOOK = 15.0
"""Seconds between two looks for a promotion."""

_CATCH_UP = 0.01
"""Seconds after which the process that answers sees what the other has written."""

_GRACE = 3
"""Seconds that answers under way get when the view ends."""

_READY, _STOP = b"ready", b"stop"
_SIGNALS = {signal.SIGINT, signal.SIGTERM}
log = structlog.get_logger()


@dataclass(frozen=True)
class Served:
    """What the process that answers needs.

    Attributes:
        settings: The settings of the version.
        whole: The settings of all versions, to look for a promotion; ``None``: it does not look.
        partitions: Number of partitions of the topics.
        part: The part of them.
        folder: The folder of the part.
        prepare: Called first in that process, e.g. to configure the log.
        peers: The URLs of all parts, in order, if they are known.
        token: What who asks must know; empty: nothing.
        topics: The topics of jobs whose rows it serves; empty: it serves what the detector believes.
    """

    settings: Settings
    whole: Settings | None
    partitions: int
    part: Part
    folder: Path
    prepare: Callable[[], None]
    peers: tuple[str, ...] = ()
    token: str = field(default="", repr=False)
    topics: tuple[str, ...] = ()


def serve_view(follower: Follower, served: Served, listener: socket.socket, ready: Callable[[], None]) -> None:
    """Follows the topics and answers at a socket until Ctrl-C or SIGTERM, then closes the follower.

    Args:
        follower: Reads the topics.
        served: What the other process needs.
        listener: The socket; closed at the end.
        ready: Called when it answers.

    Raises:
        NewnormalError: ``VIEW_UNUSABLE`` if the process that answers has ended by itself.
    """
    stopped = threading.Event()
    before = {number: signal.signal(number, lambda *_: stopped.set()) for number in _SIGNALS}
    try:
        process, ours = _started(served, listener)
        try:
            _follow(follower, process, ours, stopped, ready)
        finally:
            with suppress(OSError):
                ours.send_bytes(_STOP)
            process.join(_GRACE + 2)
            process.kill()
    finally:
        follower.close()
        listener.close()
        for number, handler in before.items():
            signal.signal(number, handler)


def _started(served: Served, listener: socket.socket) -> tuple[Any, Connection]:
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_answer, args=(served, listener, theirs), daemon=True)
    signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)  # the process inherits it: Ctrl-C reaches this one only
    try:
        process.start()
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
        theirs.close()
    return process, ours


def _follow(
    follower: Follower, process: Any, ours: Connection, stopped: threading.Event, ready: Callable[[], None]
) -> None:
    announced = False
    while not stopped.is_set():
        if not process.is_alive():
            raise NewnormalError("VIEW_UNUSABLE", "the process that answers has ended", str(follower.folder))
        if not announced and ours.poll():
            announced = ours.recv_bytes() == _READY
            ready()
        follower.go_on(stopped, "the view")


def _answer(served: Served, listener: socket.socket, theirs: Connection) -> None:
    """The process that answers. It ends when the other says so, or at once if the other has ended."""
    served.prepare()
    database = Database(served.folder / "data", served.folder / "reader")
    server = _Server(configuration(_app(served, database), _GRACE, lifespan="off"), theirs)
    threading.Thread(target=_obey, args=(server, theirs), daemon=True).start()
    asyncio.run(_serve(server, listener, database))
    database.close()


def _app(served: Served, database: Database) -> FastAPI:
    shown = served.settings.view
    hosts = shown.hosts.split(",")
    if served.topics:
        return create_rows_app(Rows(database), served.topics, shown.host, hosts, served.token, shown.reached)
    answers = Answers(database, served.settings, served.partitions, served.part)
    promoted = _Promoted(served.whole)
    return create_app(
        answers, lambda: promoted.name, served.peers, shown.host, hosts, token=served.token, reached=shown.reached
    )


async def _serve(server: uvicorn.Server, listener: socket.socket, database: Database) -> None:
    following = asyncio.create_task(_catch_up(database))
    await server.serve([listener])
    following.cancel()


async def _catch_up(database: Database) -> None:
    while True:
        with suppress(Exception):  # a file that the writer has just removed; the next time it is not looked for
            database.catch_up()
        await asyncio.sleep(_CATCH_UP)


def _obey(server: uvicorn.Server, theirs: Connection) -> None:
    try:
        theirs.recv_bytes()
    except (EOFError, OSError):
        os._exit(1)  # the other process was killed; the port must be free for the next one
    server.should_exit = True


class _Server(uvicorn.Server):
    """A server that says when it is ready."""

    def __init__(self, config: uvicorn.Config, theirs: Connection) -> None:
        super().__init__(config)
        self._theirs = theirs

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._theirs.send_bytes(_READY)


class _Promoted:
    """The version that readers see, looked for now and then.

    Attributes:
        name: Its name; ``None``: not known.
    """

    def __init__(self, settings: Settings | None) -> None:
        self.name: str | None = None
        if settings and settings.elasticsearch.url:
            threading.Thread(target=self._look, args=(settings,), daemon=True).start()

    def _look(self, settings: Settings) -> None:
        wait = threading.Event()
        while True:
            try:
                self.name = shown_version(settings)
            except NewnormalError as error:
                log.warning("the promoted version is not known", reason=error.what)
            wait.wait(_LOOK)
