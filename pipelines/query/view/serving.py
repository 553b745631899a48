"""Runs a view in two processes: this one reads the topics, another answers over HTTP from the same database.

In one process the thread that answers would wait for Python's global lock while the other stores messages. Where scores
are pushed, a third one does that.
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
from pipelines.query.view.scores.endpoint import Endpoint
from pipelines.query.view.scores.sender import Sender
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
        served: What the other processes need.
        listener: The socket; closed at the end.
        ready: Called when it answers.

    Raises:
        NewnormalError: ``VIEW_UNUSABLE`` if another process has ended by itself.
    """
    stopped = threading.Event()
    before = {number: signal.signal(number, lambda *_: stopped.set()) for number in _SIGNALS}
    others: list[_Other] = []
    try:
        others.append(_Other("answers", _answer, served, listener))
        if served.settings.scores.remote_write_url and not served.topics:
            others.append(_Other("pushes scores", _push, served))
        _follow(follower, others, stopped, ready)
    finally:
        for other in others:
            other.end()
        follower.close()
        listener.close()
        for number, handler in before.items():
            signal.signal(number, handler)


class _Other:
    """Another process of the view.

    Args:
        does: What it does, in words.
        target: What it runs, with the arguments and its end of a pipe.
    """

    def __init__(self, does: str, target: Callable[..., None], *arguments: object) -> None:
        context = multiprocessing.get_context("spawn")
        self._ours, theirs = context.Pipe()
        self.does, self._announced = does, False
        self._process = context.Process(target=target, args=(*arguments, theirs), daemon=True)
        signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)  # the process inherits it: Ctrl-C reaches this one only
        try:
            self._process.start()
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
            theirs.close()

    def is_alive(self) -> bool:
        """Whether it runs."""
        return self._process.is_alive()

    def has_begun(self) -> bool:
        """True once: when it has said that it is ready."""
        if self._announced or not self._ours.poll():
            return False
        self._announced = self._ours.recv_bytes() == _READY
        return self._announced

    def end(self) -> None:
        """Asks it to end, and ends it if it does not."""
        with suppress(OSError):
            self._ours.send_bytes(_STOP)
        self._process.join(_GRACE + 2)
        self._process.kill()


def _follow(follower: Follower, others: list[_Other], stopped: threading.Event, ready: Callable[[], None]) -> None:
    while not stopped.is_set():
        for other in others:
            if not other.is_alive():
                raise NewnormalError("VIEW_UNUSABLE", f"the process that {other.does} has ended", str(follower.folder))
        if others[0].has_begun():
            ready()
        follower.go_on(stopped, "the view")


def _answer(served: Served, listener: socket.socket, theirs: Connection) -> None:
    """The process that answers. It ends when the other says so, or at once if the other has ended."""
    served.prepare()
    database = Database(served.folder / "data", served.folder / "reader")
    server = _Server(configuration(_app(served, database), _GRACE, lifespan="off"), theirs)

    def end() -> None:
        server.should_exit = True

    threading.Thread(target=_obey, args=(end, theirs), daemon=True).start()
    asyncio.run(_serve(server, listener, database))
    database.close()


def _push(served: Served, theirs: Connection) -> None:
    """The process that pushes scores; it ends as the one that answers."""
    served.prepare()
    stopped = threading.Event()
    threading.Thread(target=_obey, args=(stopped.set, theirs), daemon=True).start()
    database = Database(served.folder / "data", served.folder / "pusher")
    answers = Answers(database, served.settings, served.partitions, served.part)
    with Endpoint(served.settings.scores) as endpoint:
        Sender(answers, served.folder, endpoint).run(stopped)
    database.close()


def _app(served: Served, database: Database) -> FastAPI:
    shown = served.settings.view
    hosts = shown.hosts.split(",")
    if served.topics:
        return create_rows_app(Rows(database), served.topics, shown.host, hosts, served.token, shown.reached)
    answers = Answers(database, served.settings, served.partitions, served.part)
    promoted = _Promoted(served.whole)
    return create_app(
        answers, lambda: promoted.name, served.peers, shown.host, hosts, served.token, shown.reached, served.folder
    )


async def _serve(server: uvicorn.Server, listener: socket.socket, database: Database) -> None:
    following = asyncio.create_task(_catch_up(database))
    await server.serve([listener])
    following.cancel()


async def _catch_up(database: Database) -> None:
    while True:
        database.catch_up()
        await asyncio.sleep(_CATCH_UP)


def _obey(end: Callable[[], None], theirs: Connection) -> None:
    try:
        theirs.recv_bytes()
    except (EOFError, OSError):
        os._exit(1)  # the other process was killed; the port must be free for the next one
    end()


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
