"""Repeats requests to a server that is down or overloaded: backoff with jitter, log lines, and a way to stop."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Self, TypeVar

import structlog
from elastic_transport import TransportError
from elasticsearch import ApiError, UnsupportedProductError

from engine.spec.errors import NewnormalError
from pipelines.contracts.elasticsearch_client import reason

T = TypeVar("T")
_log = structlog.get_logger(__name__)

TRANSIENT = frozenset({408, 429, 500, 502, 503, 504})
"""HTTP statuses after which the same request may succeed if it is repeated."""

_LOG_EVERY_S = 10.0
_REPORTED_AFTER_S = 5.0


class SinkStoppedError(NewnormalError):
    """The sink was stopped while it waited; some documents of this call are not stored."""


class ForbiddenError(NewnormalError):
    """The account may not do this: it lacks a privilege, which the server names."""


@dataclass(frozen=True)
class Backoff:
    """The pauses between tries: each has a random length, from half of its longest length to the whole of it.

    Attributes:
        first_s: Longest length of the first pause, seconds; it doubles with each pause.
        most_s: Upper bound of that length, seconds.
        give_up_after_s: Seconds without an answer after which an error is raised; ``None``: never, as a stream should.
    """

    first_s: float = 0.1
    most_s: float = 5.0
    give_up_after_s: float | None = None

    def pause_s(self, attempt: int) -> float:
        """The length of the pause before retry number ``attempt`` (1 is the first), seconds, with jitter."""
        longest = min(self.most_s, self.first_s * 2.0 ** min(attempt - 1, 30))
        return random.uniform(longest / 2, longest)


class Patience:
    """Repeats requests to one Elasticsearch until it answers them; several threads may wait at a time.

    It logs why it waits at most every ten seconds, and that the server answers again when the last thread goes on.
    """

    def __init__(self, backoff: Backoff, stop: threading.Event, server: str) -> None:
        self.backoff, self.stop, self.server = backoff, stop, server
        self._waiting: dict[Wait, tuple[float, str]] = {}
        self._logged, self._lock = float("-inf"), threading.Lock()

    def problem(self) -> str | None:
        """Why the server's answers cannot be used, if that has been so for some seconds; for the status."""
        with self._lock:
            since, why = min(self._waiting.values(), default=(float("inf"), ""))
        if (waited := time.monotonic() - since) < _REPORTED_AFTER_S:
            return None
        return f"Elasticsearch at {self.server} takes no documents for {waited:.0f} s: {why}"

    def insist(self, call: Callable[[], T], recover: Callable[[], object] | None = None) -> T:
        """Makes a request, and repeats it while the server is down or overloaded; returns the result.

        Args:
            call: Makes the request; it must be idempotent.
            recover: Called before a retry after an outage, as the server may have lost its templates, for example.

        Raises:
            ApiError: For HTTP statuses that a retry cannot change.
            NewnormalError: ``ELASTICSEARCH_REFUSED`` if the server refuses the account or is no Elasticsearch 8,
                ``ELASTICSEARCH_UNREACHABLE`` after ``give_up_after_s``, ``SINK_STOPPED`` (a `SinkStoppedError`) if the
                sink is stopped.
        """
        with self.wait() as wait:
            outage = False
            while True:
                try:
                    if outage and recover:
                        recover()
                    return call()
                except TransportError as error:
                    outage = True
                    wait.pause(f"not answering: {error.message}")
                except UnsupportedProductError as error:
                    raise self.refused(str(error)) from None
                except ApiError as error:
                    if error.status_code in (401, 403):
                        kind = ForbiddenError if error.status_code == 403 else NewnormalError
                        raise self.refused(f"HTTP {error.status_code}: {reason(error)}", kind) from None
                    if error.status_code not in TRANSIENT:
                        raise
                    wait.pause(f"overloaded or starting: HTTP {error.status_code}")

    def wait(self) -> Wait:
        """A series of pauses for callers that repeat something other than one request."""
        return Wait(self)

    def report(self, wait: Wait, why: str) -> None:
        now = time.monotonic()
        with self._lock:
            self._waiting[wait] = wait.since, why
            if now - self._logged >= _LOG_EVERY_S:
                waited_s = round(now - wait.since, 1)
                _log.warning("waiting for elasticsearch", server=self.server, why=why, waited_s=waited_s)
                self._logged = now

    def ended(self, wait: Wait, answered: bool) -> None:
        with self._lock:
            if self._waiting.pop(wait, None) is None or self._waiting:
                return
            self._logged = float("-inf")
        if answered:
            waited_s = round(time.monotonic() - wait.since, 1)
            _log.info("elasticsearch answers again", server=self.server, waited_s=waited_s)

    def refused(self, why: str, kind: type[NewnormalError] = NewnormalError) -> NewnormalError:
        """The error for a server that answers, but does not let the sink write."""
        return kind(
            "ELASTICSEARCH_REFUSED", why, self.server, "an Elasticsearch 8 that accepts our writes", "the job stops"
        )


class Wait:
    """The pauses of one outage, as a context manager: at its end, the outage is over.

    Args:
        patience: Knows the pauses and the server, and counts those that wait.

    Attributes:
        since: Beginning of the outage, monotonic seconds.
    """

    def __init__(self, patience: Patience) -> None:
        self._patience, self._attempt, self.since = patience, 0, time.monotonic()

    def pause(self, why: str) -> None:
        """Sleeps, longer with each call.

        Args:
            why: Why the server's answer cannot be used yet; for the log.

        Raises:
            NewnormalError: ``ELASTICSEARCH_UNREACHABLE`` or ``SINK_STOPPED``, see `Patience.insist`.
        """
        self._attempt += 1
        self._patience.report(self, why)
        waited, limit = time.monotonic() - self.since, self._patience.backoff.give_up_after_s
        if limit is not None and waited >= limit:
            self._patience.ended(self, False)
            accepted = "a running Elasticsearch"
            raise NewnormalError(
                "ELASTICSEARCH_UNREACHABLE", why, self._patience.server, accepted, f"gave up after {waited:.0f} s"
            )
        if self._patience.stop.wait(self._patience.backoff.pause_s(self._attempt)):
            self._patience.ended(self, False)
            now_ = "the next start writes the documents that are not stored yet"
            raise SinkStoppedError("SINK_STOPPED", f"stopped while waiting: {why}", self._patience.server, now=now_)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._patience.ended(self, True)
