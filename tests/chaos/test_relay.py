"""The relay before Kafka forwards bytes, delays them, swallows them while it is told to, and ends connections."""

from __future__ import annotations

import socket
import socketserver
import threading
import time
from collections.abc import Iterator

import pytest

from tests.chaos.runs.relay import Relay


class _Echo(socketserver.BaseRequestHandler):
    def handle(self) -> None:
        while piece := self.request.recv(65_536):
            self.request.sendall(piece)


@pytest.fixture
def relay() -> Iterator[tuple[Relay, socket.socket]]:
    """A relay before a server that sends back what it gets, and a connection through it."""
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), _Echo) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        listener = socket.create_server(("127.0.0.1", 0))
        with Relay(listener, server.server_address[1], delay=0.3) as relay:
            client = socket.create_connection(listener.getsockname(), timeout=10)
            yield relay, client
            client.close()
        server.shutdown()


def _answer(client: socket.socket, sent: bytes) -> bytes:
    client.sendall(sent)
    got = b""
    while len(got) < len(sent):
        got += client.recv(65_536)
    return got


def test_bytes_come_back_unchanged(relay: tuple[Relay, socket.socket]) -> None:
    sent = bytes(range(256)) * 4_000
    assert _answer(relay[1], sent) == sent


def test_a_slow_relay_delays_each_way(relay: tuple[Relay, socket.socket]) -> None:
    relay[0].mood = "slow"
    began = time.monotonic()
    assert _answer(relay[1], b"ping") == b"ping"
    assert time.monotonic() - began >= 0.6


def test_what_is_swallowed_comes_when_the_relay_is_open_again(relay: tuple[Relay, socket.socket]) -> None:
    relay[0].mood = "blackhole"
    relay[1].sendall(b"ping")
    relay[1].settimeout(0.5)
    with pytest.raises(TimeoutError):
        relay[1].recv(10)
    relay[0].mood = "open"
    relay[1].settimeout(10)
    assert relay[1].recv(10) == b"ping"


def test_a_cut_ends_the_connection_and_a_new_one_works(relay: tuple[Relay, socket.socket]) -> None:
    address = relay[1].getpeername()
    assert _answer(relay[1], b"ping") == b"ping"
    assert relay[0].cut() == 1
    assert relay[1].recv(10) == b""
    with socket.create_connection(address, timeout=10) as again:
        assert _answer(again, b"pong") == b"pong"
