"""Waiting for a server that is down or overloaded: backoff with jitter, a log line that says so, a way out."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import structlog
from elastic_transport import TransportError
from elasticsearch import ApiError, UnsupportedProductError

from engine.spec.errors import NewnormalError

T = TypeVar("T")
_log = structlog.get_logger(__name__)

TRANSIENT = frozenset({408, 429, 500, 502, 503, 504})
"""HTTP statuses of a whole request after which the same request may succeed."""

_LOG_EVERY_S = 10.0


class SinkStoppedError(NewnormalError):
    """The sink was told to stop while it waited; the documents of this call are not all stored."""


@dataclass(frozen=True)
class Backoff:
    """How long to wait between tries.

    Attributes:
        first_s: Longest first pause; each pause is a random share, at least half, of its longest.
        most_s: Longest pause of all.
        give_up_after_s: Raise after so long without an answer; ``None``: wait for ever, as a stream should.
    """

    first_s: float = 0.1
    most_s: float = 5.0
    give_up_after_s: float | None = None

    def pause_s(self, attempt: int) -> float:
        """The pause before try ``attempt`` (1 is the first retry), with jitter."""
        longest = min(self.most_s, self.first_s * 2.0 ** min(attempt - 1, 30))
        return random.uniform(longest / 2, longest)


class Patience:
    """Repeats calls to one Elasticsearch until they are answered."""

    def __init__(self, backoff: Backoff, stop: threading.Event, server: str) -> None:
        self._backoff, self._stop, self._server = backoff, stop, server

    def insist(self, call: Callable[[], T], recover: Callable[[], object] | None = None) -> T:
        """The result of ``call``, tried again for as long as the server is down or overloaded.

        Args:
            call: A request; it is repeated, so it must be idempotent.
            recover: Run before ``call`` is tried again after an outage: the server may have lost its memory.

        Raises:
            ApiError: For statuses that trying again cannot change.
            NewnormalError: ``ELASTICSEARCH_REFUSED`` if it will not talk to us, ``ELASTICSEARCH_UNREACHABLE`` after
                ``give_up_after_s``, ``SINK_STOPPED`` (a `SinkStoppedError`) if told to stop.
        """
        wait, outage = Wait(self._backoff, self._stop, self._server), False
        while True:
            try:
                if outage and recover:
                    recover()
                result = call()
            except TransportError as error:
                outage = True
                wait.pause(f"not answering: {error.message}")
            except UnsupportedProductError as error:
                raise self.refused(str(error)) from None
            except ApiError as error:
                if error.status_code in (401, 403):
                    raise self.refused(str(error)) from None
                if error.status_code not in TRANSIENT:
                    raise
                wait.pause(f"overloaded or starting: HTTP {error.status_code}")
            else:
                wait.over()
                return result

    def wait(self) -> Wait:
        """A series of pauses for something else than the answer to one request."""
        return Wait(self._backoff, self._stop, self._server)

    def refused(self, why: str) -> NewnormalError:
        """The error for a server that answers, but not as an Elasticsearch we may write to."""
        return NewnormalError(
            "ELASTICSEARCH_REFUSED", why, self._server, "an Elasticsearch 8 that lets us write", "the job stops"
        )


class Wait:
    """The pauses of one outage."""

    def __init__(self, backoff: Backoff, stop: threading.Event, server: str) -> None:
        self._backoff, self._stop, self._server = backoff, stop, server
        self._attempt, self._since, self._logged = 0, time.monotonic(), float("-inf")

    def pause(self, why: str) -> None:
        """Sleeps longer each time; says so in the log, at most every ten seconds.

        Raises:
            NewnormalError: ``ELASTICSEARCH_UNREACHABLE`` or ``SINK_STOPPED``, see `Patience.insist`.
        """
        self._attempt += 1
        now = time.monotonic()
        waited, limit = now - self._since, self._backoff.give_up_after_s
        if now - self._logged >= _LOG_EVERY_S:
            _log.warning("elasticsearch is waited for", server=self._server, why=why, waited_s=round(waited, 1))
            self._logged = now
        if limit is not None and waited >= limit:
            accepted = "a running Elasticsearch"
            raise NewnormalError(
                "ELASTICSEARCH_UNREACHABLE", why, self._server, accepted, f"gave up after {waited:.0f} s"
            )
        if self._stop.wait(self._backoff.pause_s(self._attempt)):
            now_ = "documents not stored yet are written again at the next start"
            raise SinkStoppedError("SINK_STOPPED", f"stopped while waiting: {why}", self._server, now=now_)

    def over(self) -> None:
        """Says in the log that an outage has ended, if there was one."""
        if self._attempt:
            waited_s = round(time.monotonic() - self._since, 1)
            _log.info("elasticsearch answers again", server=self._server, waited_s=waited_s, tries=self._attempt + 1)
