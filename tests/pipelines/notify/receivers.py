"""A real receiver on loopback: an HTTP server that keeps what it is sent; and incidents to send."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

import orjson

from pipelines.contracts.records import Incident
from pipelines.contracts.records.incident import AffectedMachine, Candidate

T0 = 1_767_571_200_000


def incident(name: str = "aaa", status: str = "open", severity: str = "critical", **more: Any) -> Incident:
    """An incident of one machine."""
    given: dict[str, Any] = {
        "id": name, "opened": T0, "site": "default", "status": status, "severity": severity, "severity_score": 80,
        "record_score": 90, "start": T0 - 20_000, "updated": T0, "message": f"{name} is down", "machine_count": 1,
        "series_count": 3, "open_series": 3,
        "machines": [AffectedMachine(entity="db-1", since=T0, series=3, record_score=90)],
        "candidates": [Candidate(entity="db-1", metric="cpu", since=T0, share=1.0, reason="it began first")],
    }  # fmt: skip
    return Incident(**given | ({"end": T0 + 60_000} if status == "resolved" else {}) | more)


Answer = tuple[int, dict[str, str], str]
"""Status, headers and text of an answer."""


class Request(NamedTuple):
    """What an HTTP server is sent."""

    method: str
    path: str
    headers: dict[str, str]
    body: Any
    raw: bytes


class HttpReceiver:
    """An HTTP server.

    Attributes:
        got: Path, headers and JSON of each request that was answered with success.
        answers: Called with the number of the request, from 1; returns the answer.
        judges: Called with the request, if it is set, where ``answers`` gives a success.
    """

    def __init__(self) -> None:
        self.got: list[tuple[str, dict[str, str], Any]] = []
        self.asked = 0
        self.answers: Callable[[int], Answer] = lambda _: (200, {}, "ok")
        self.judges: Callable[[Request], Answer] | None = None
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                raw = self.rfile.read(int(self.headers["Content-Length"]))
                body = orjson.loads(raw)
                receiver.asked += 1
                status, headers, text = receiver.answers(receiver.asked)
                if status < 300 and receiver.judges:
                    asked = Request(self.command, self.path, dict(self.headers), body, raw)
                    status, headers, text = receiver.judges(asked)
                if status < 300:
                    receiver.got.append((self.path, dict(self.headers), body))
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(text.encode())

            def do_PUT(self) -> None:
                self.do_POST()

            def log_message(self, *_: Any) -> None:
                """Says nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    @property
    def bodies(self) -> list[Any]:
        return [body for _, _, body in self.got]

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@contextmanager
def http_receiver() -> Iterator[HttpReceiver]:
    receiver = HttpReceiver()
    try:
        yield receiver
    finally:
        receiver.close()


def until(condition: Callable[[], bool], seconds: float = 30) -> None:
    """Waits for a condition."""
    ends = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < ends, "it did not happen in time"
        time.sleep(0.02)
