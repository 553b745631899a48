"""Watches the servers that the jobs need, and logs while one does not answer."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Self

import structlog

from deploy.embedded.external import elasticsearch_problem

EVERY_SECONDS = 1.0
AWAY_SECONDS = 5.0
"""A server that has not answered for this many seconds is away; shorter delays are not reported."""
_LOG_EVERY_SECONDS = 10.0

Check = Callable[[], None]
"""A function that asks a server: it returns once the server has answered, or raises an error within a few seconds."""
log = structlog.get_logger()


@dataclass(frozen=True)
class Away:
    """A server that does not answer.

    Attributes:
        server: Name of the server.
        seconds: Time since its last answer, seconds.
        reason: Error of the last attempt to ask it.
    """

    server: str
    seconds: float
    reason: str

    def __str__(self) -> str:
        return f"{self.server}: no answer for {self.seconds:.0f} s"


class _Server:
    def __init__(self, name: str, check: Check, back: Callable[[str], None]) -> None:
        self.name, self.check, self.back = name, check, back
        self.answered, self.logged, self.reason = time.monotonic(), 0.0, ""

    def ask(self) -> None:
        try:
            self.check()
        except Exception as error:
            self.reason = str(error).splitlines()[0][:200] if str(error) else type(error).__name__
            return
        before, failed = self.away(), bool(self.reason)
        self.answered, self.reason, self.logged = time.monotonic(), "", 0.0
        if failed:
            self.back(self.name)
        if before:
            log.info(f"{self.name}: answers again after {before.seconds:.0f} s")

    def tell(self) -> None:
        away = self.away()
        if away and time.monotonic() >= self.logged + _LOG_EVERY_SECONDS:
            self.logged = time.monotonic()
            log.warning(f"{away}, trying again", reason=away.reason)

    def away(self) -> Away | None:
        seconds = time.monotonic() - self.answered
        return Away(self.name, seconds, self.reason or "no answer yet") if seconds >= AWAY_SECONDS else None


class ServerWatch:
    """Asks each server once a second. Each server has a thread of its own, so that one that hangs delays no other.

    Args:
        checks: The function that asks a server, by name of the server.
        back: Called with the name of a server that answers again after at least one failed attempt.
    """

    def __init__(self, checks: Mapping[str, Check], back: Callable[[str], None] = lambda _server: None) -> None:
        self._servers = {name: _Server(name, check, back) for name, check in checks.items()}
        self._stopping = threading.Event()

    def __enter__(self) -> Self:
        for server in self._servers.values():
            threading.Thread(target=self._run, args=(server.ask,), daemon=True, name=f"watch-{server.name}").start()
            threading.Thread(target=self._run, args=(server.tell,), daemon=True, name=f"tell-{server.name}").start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()

    def away(self) -> list[Away]:
        """The servers that do not answer now."""
        return [away for server in self._servers.values() if (away := server.away())]

    def is_away(self, *names: str) -> bool:
        """True if one of the named servers does not answer now."""
        return any(self._servers[name].away() for name in names if name in self._servers)

    def _run(self, step: Callable[[], None]) -> None:
        while not self._stopping.wait(EVERY_SECONDS):
            step()


def ask_elasticsearch(url: str, timeout: float = 4.0) -> None:
    """Asks an Elasticsearch cluster for its health.

    Raises:
        TimeoutError: If it does not answer within ``timeout`` seconds, or cannot be used; the message says why.
    """
    if problem := elasticsearch_problem(url, timeout):
        raise TimeoutError(f"{problem.code}: {problem.what}")
