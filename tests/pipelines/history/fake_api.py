"""The HTTP API of Prometheus as it is documented, for what a real server does not do when it is asked to.

Source: the Prometheus documentation, "HTTP API": formats of answers and errors, at most 11,000 points of a series; and
"Querying": which samples a range holds, before release 3.0 and since then.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import orjson

from tests.prometheus_server import History

Answer = tuple[int, dict[str, Any] | bytes, dict[str, str]]


@dataclass
class FakeApi:
    """What the server has, and how it answers.

    Attributes:
        history: The series; selectors are not read: each query gives all.
        closed: Whether a range holds its first instant, as before release 3.0.
        first: Answers that are given before others, one after the other.
        wanted: Headers without which it answers 401.
        most: Samples that a query may give.
        asked: Path and parameters of each request.
    """

    history: History = field(default_factory=dict)
    closed: bool = True
    first: list[Answer] = field(default_factory=list)
    wanted: dict[str, str] = field(default_factory=dict)
    most: int = 10**9
    asked: list[tuple[str, dict[str, str]]] = field(default_factory=list)

    def answer(self, path: str, given: dict[str, str], headers: Any) -> Answer:
        self.asked.append((path, given))
        if any(headers.get(name) != value for name, value in self.wanted.items()):
            return 401, b"go away", {}
        if self.first:
            return self.first.pop(0)
        if path == "/prom/api/v1/series":
            return 200, {"status": "success", "data": [dict(labels) for labels in self.history]}, {}
        if path != "/prom/api/v1/query":
            return 404, b"<html>not here</html>", {}
        last = round(float(given["time"]) * 1000)
        length = int((re.fullmatch(r".*\[(\d+)ms\]", given["query"]) or [""])[1])
        begin = last - length + (0 if self.closed else 1)
        found = {k: [s for s in samples if begin <= s[0] <= last] for k, samples in self.history.items()}
        if sum(map(len, found.values())) > self.most:
            why = "query processing would load too many samples into memory in query execution"
            return 422, {"status": "error", "errorType": "execution", "error": why}, {}
        result = [
            {"metric": dict(k), "values": [[t / 1000, str(v)] for t, v in samples]}
            for k, samples in found.items()
            if samples
        ]
        return 200, {"status": "success", "data": {"resultType": "matrix", "result": result}}, {}


@contextmanager
def serving(api: FakeApi) -> Iterator[str]:
    """The address of a server that answers so."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            status, body, headers = api.answer(parts.path, dict(parse_qsl(parts.query)), self.headers)
            content = body if isinstance(body, bytes) else orjson.dumps(body)
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(content))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: Any) -> None:
            """Writes nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/prom"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
