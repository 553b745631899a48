"""A TCP relay between the pipeline and Kafka that can be slow, cut its connections, or swallow all that is sent."""

from __future__ import annotations

import selectors
import socket
import threading
import time
from contextlib import suppress
from typing import Literal, Self

Mood = Literal["open", "slow", "blackhole"]
_PIECE = 65_536


class Relay:
    """Forwards bytes between clients and a server, each connection in threads of its own; a context manager.

    Args:
        listener: A listening socket, to which clients connect.
        target: Port of the server on the loopback interface.
        delay: Seconds by which each piece is delayed while the relay is slow.
    """

    def __init__(self, listener: socket.socket, target: int, delay: float = 0.2) -> None:
        self._listener, self._target, self._delay = listener, target, delay
        self.mood: Mood = "open"
        self._pairs: set[tuple[socket.socket, socket.socket]] = set()
        self._lock, self._ended = threading.Lock(), False

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True, name="relay").start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended = True
        self._listener.close()
        self.cut()

    def cut(self) -> int:
        """Ends all connections; returns how many there were."""
        with self._lock:
            pairs, self._pairs = self._pairs, set()
        for pair in pairs:
            _close(*pair)
        return len(pairs)

    def _accept(self) -> None:
        while not self._ended:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        try:
            server = socket.create_connection(("127.0.0.1", self._target), timeout=5)
        except OSError:
            _close(client)
            return
        pair = (client, server)
        with self._lock:
            self._pairs.add(pair)
        with selectors.DefaultSelector() as ready, suppress(OSError, ValueError):
            for one, other in (pair, pair[::-1]):
                one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                ready.register(one, selectors.EVENT_READ, other)
            while all(self._forward(key.fileobj, key.data) for key, _ in ready.select(1.0)):
                pass
        with self._lock:
            self._pairs.discard(pair)
        _close(*pair)

    def _forward(self, one: object, other: socket.socket) -> bool:
        """Forwards a piece; ``False`` at the end of the connection."""
        assert isinstance(one, socket.socket)
        piece = one.recv(_PIECE)
        while self.mood == "blackhole" and not self._ended:
            time.sleep(0.05)
        if self.mood == "slow":
            time.sleep(self._delay)
        other.settimeout(30)
        other.sendall(piece)
        return bool(piece)


def _close(*sockets: socket.socket) -> None:
    for each in sockets:
        with suppress(OSError):
            each.shutdown(socket.SHUT_RDWR)
        each.close()
