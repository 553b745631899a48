"""Connections that send nothing, or too much, hinder nobody: at a server with real sockets."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, suppress

import pytest

from dashboards.console.access import Access
from dashboards.console.app import create_app
from dashboards.console.store import Store
from pipelines.serving import connections
from pipelines.serving.bodies import MOST
from pipelines.serving.server import WebServer, serve

TOKEN = "0123456789abcdef-secret"
OWN = b"X-Newnormal: console\r\nContent-Type: application/json\r\n"
FULL = 20


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[WebServer]:
    monkeypatch.setattr(connections, "_MOST", FULL)
    monkeypatch.setattr(connections, "_HEADER_SECONDS", 1.0)
    started = serve(create_app(Store(""), access=Access("127.0.0.1", TOKEN)), "127.0.0.1", 0)
    yield started
    started.stop()


def connect(server: WebServer) -> socket.socket:
    return socket.create_connection(("127.0.0.1", int(server.url.rsplit(":", 1)[1])), 20)


def asked(server: WebServer, head: bytes, body: bytes = b"") -> bytes:
    """The beginning of the answer to a request."""
    with closing(connect(server)) as mine:
        mine.sendall(head.replace(b"\r\n", b"\r\nHost: 127.0.0.1\r\n", 1) + b"\r\n" + body)
        return mine.recv(2_000)


def test_idle_and_half_open_connections_do_not_hinder_an_honest_request(server: WebServer) -> None:
    held = server._uvicorn.server_state.connections
    with ExitStack() as stack:
        for number in range(5 * FULL):
            mine = stack.enter_context(closing(connect(server)))
            mine.sendall((b"", b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-A: ")[number % 2])
        began = time.monotonic()
        assert asked(server, b"GET /page/dom.js HTTP/1.1\r\n").startswith(b"HTTP/1.1 200")
        assert time.monotonic() - began < 5
        assert len(held) <= FULL


@pytest.mark.parametrize("sent", [b"", b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-A: "])
def test_a_request_that_does_not_begin_is_given_up(server: WebServer, sent: bytes) -> None:
    with closing(connect(server)) as mine:
        mine.sendall(sent)
        with suppress(ConnectionResetError):
            assert mine.recv(100) == b""


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (OWN + b"Content-Length: 300000000\r\n", b"413"),
        (OWN.replace(b"X-Newnormal: console\r\n", b"") + b"Content-Length: 300000000\r\n", b"403"),
        (OWN + b"Sec-Fetch-Site: cross-site\r\nContent-Length: 300000000\r\n", b"403"),
        (OWN + b"Origin: https://evil.example\r\nContent-Length: 300000000\r\n", b"403"),
    ],
)
def test_a_large_body_is_refused_before_it_is_sent(server: WebServer, head: bytes, status: bytes) -> None:
    answer = asked(server, b"POST /login HTTP/1.1\r\n" + head)
    assert answer.split()[1] == status
    assert b"connection: close" in answer.lower()


def test_a_stranger_is_refused_before_the_body_is_sent(server: WebServer) -> None:
    answer = asked(server, b"POST /api/label HTTP/1.1\r\n" + OWN + b"Content-Length: 300000000\r\n")
    assert answer.split()[1] == b"401"


def test_a_body_in_pieces_is_read_no_further_than_the_bound(server: WebServer) -> None:
    piece = b"%x\r\n%s\r\n" % (MOST // 2 + 1, b"0" * (MOST // 2 + 1))
    answer = asked(server, b"POST /login HTTP/1.1\r\nTransfer-Encoding: chunked\r\n" + OWN, 2 * piece)
    assert answer.split()[1] == b"413"


def test_a_body_in_very_many_pieces_is_refused_and_others_are_served_meanwhile(server: WebServer) -> None:
    """A piece of one byte costs the server a thousand times what it costs the sender."""
    head = b"POST /login HTTP/1.1\r\nTransfer-Encoding: chunked\r\n" + OWN
    began = time.monotonic()
    answer = asked(server, head, b"1\r\n0\r\n" * 50_000)
    assert answer.split()[1] == b"400"
    assert asked(server, b"GET /page/dom.js HTTP/1.1\r\n").startswith(b"HTTP/1.1 200")
    assert time.monotonic() - began < 5


def test_a_body_within_the_bound_is_taken(server: WebServer) -> None:
    told = b'{"token": "%s"}' % TOKEN.encode()
    length = b"Content-Length: %d\r\n" % len(told)
    assert asked(server, b"POST /login HTTP/1.1\r\n" + OWN + length, told).startswith(b"HTTP/1.1 200")
