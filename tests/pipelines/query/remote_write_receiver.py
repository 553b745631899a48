"""A receiver of Prometheus' remote write, written from the specification of Remote-Write 1.0, that forgives nothing.

It reads protobuf by its wire format, without the definitions of the code under test.
"""

from __future__ import annotations

import math
import re
import struct
import threading
from collections.abc import Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pyarrow as pa

Labels = tuple[tuple[str, str], ...]
STALE = 0x7FF0000000000002
_NAME, _LABEL = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*"), re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")


class Receiver:
    """Listens at this machine.

    Args:
        answers: Status and headers of the answers to the first requests; what it does not take it forgets. All later
            requests are taken.

    Attributes:
        samples: Value by series and time; a value that is sent again must be the same.
        stale: The times of stale markers of each series.
        statuses: Of all answers.
        headers: Those of the last request.
    """

    def __init__(self, answers: Sequence[tuple[int, dict[str, str]]] = ()) -> None:
        self.samples: dict[Labels, dict[int, float]] = {}
        self.stale: dict[Labels, set[int]] = {}
        self.statuses: list[int] = []
        self.headers: dict[str, str] = {}
        self.faults: list[str] = []
        waiting = list(answers)
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                receiver.headers = {name.lower(): value for name, value in self.headers.items()}
                status, headers = waiting.pop(0) if waiting else (204, {})
                try:
                    if status < 300:
                        receiver.take(body)
                except Exception as error:
                    receiver.faults.append(repr(error))
                receiver.statuses.append(status)
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                text = b"" if status == 204 else b"this is the reason"
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, *_: object) -> None:
                """Says nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self._server.server_port}/api/v1/write"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def take(self, body: bytes) -> None:
        """Takes in a request, and notes what the specification forbids."""
        wanted = {
            "content-encoding": "snappy", "content-type": "application/x-protobuf",
            "x-prometheus-remote-write-version": "0.1.0",
        }  # fmt: skip
        self._must({name: self.headers.get(name) for name in wanted} == wanted, f"headers {self.headers}")
        self._must("user-agent" in self.headers, "no User-Agent")
        seen: set[Labels] = set()
        for number, series in fields(pa.decompress(body, _length(body), codec="snappy", asbytes=True)):
            self._must(number == 1, f"field {number} of the request")
            labels, samples = [], []
            for inside, value in fields(series):
                if inside == 1:
                    pair = dict(fields(value))
                    labels.append((pair[1].decode(), pair[2].decode()))
                elif inside == 2:
                    sample = dict(fields(value))
                    samples.append((sample.get(1, 0), sample.get(2, 0)))
            self._take_series(tuple(labels), samples, seen)

    def _take_series(self, labels: Labels, samples: list[tuple[int, int]], seen: set[Labels]) -> None:
        names = [name for name, _ in labels]
        self._must(names == sorted(set(names)), f"labels that are not sorted, or twice: {names}")
        self._must(labels not in seen, f"a series twice in one request: {labels}")
        seen.add(labels)
        self._must(all(value and _LABEL.fullmatch(name) for name, value in labels), f"labels {labels}")
        self._must(_NAME.fullmatch(dict(labels).get("__name__", "")) is not None, f"no name: {labels}")
        self._must(len(samples) == 1, f"{len(samples)} samples of {labels}")
        mine = self.samples.setdefault(labels, {})
        for bits, time in samples:
            self._must(time >= max(mine, default=0), f"{labels} out of order: {time}")
            if bits == STALE:
                self.stale.setdefault(labels, set()).add(time)
                continue
            (value,) = struct.unpack("<d", struct.pack("<Q", bits))
            self._must(
                not math.isnan(value) and mine.get(time, value) == value,
                f"{labels} at {time}: {mine.get(time)} and {value}",
            )
            mine[time] = value

    def _must(self, holds: bool, fault: str) -> None:
        if not holds:
            self.faults.append(fault)


def fields(message: bytes) -> Iterator[tuple[int, Any]]:
    """The fields of a message in protobuf's wire format: number, and bytes or the bits of a number."""
    at = 0
    while at < len(message):
        key, at = _varint(message, at)
        kind = key & 7
        if kind == 0:
            value, at = _varint(message, at)
        elif kind == 1:
            value, at = int.from_bytes(message[at : at + 8], "little"), at + 8
        else:
            assert kind == 2, kind
            length, at = _varint(message, at)
            yield key >> 3, message[at : at + length]
            at += length
            continue
        yield key >> 3, value


def _varint(message: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        value |= (message[at] & 0x7F) << shift
        shift, at = shift + 7, at + 1
        if message[at - 1] < 0x80:
            return value, at


def _length(body: bytes) -> int:
    """The length of the content, with which a block of snappy begins."""
    return _varint(body, 0)[0]
