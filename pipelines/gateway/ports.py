"""What ports that are not HTTP share: their sockets, and the thread that serves them."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from engine.spec.errors import NewnormalError

_RECEIVE_BUFFER = 4_000_000
_CLOSE_SECONDS = 10.0


def sockets(host: str, port: int, user: str, setting: str) -> tuple[socket.socket, socket.socket]:
    """A socket of TCP and one of UDP at the same address; with port 0 at any free one.

    Args:
        host: The address.
        port: The port.
        user: What it is for, for the reason.
        setting: The setting that names the port.

    Raises:
        NewnormalError: ``PORT_TAKEN``.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    tcp, udp = socket.socket(family, socket.SOCK_STREAM), socket.socket(family, socket.SOCK_DGRAM)
    try:
        tcp.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        udp.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _RECEIVE_BUFFER)
        tcp.bind((host, port))
        udp.bind((host, tcp.getsockname()[1]))
    except OSError as error:
        tcp.close()
        udp.close()
        why = f"the port {port} for {user} cannot be opened: {error.strerror}"
        raise NewnormalError("PORT_TAKEN", why, setting, "a free port", "nothing was started") from None
    tcp.listen(128)  # before anybody serves it, connections wait
    tcp.setblocking(False)
    udp.setblocking(False)
    return tcp, udp


class Port:
    """An open port that a thread of its own serves; `close` writes what has come and ends it.

    A subclass implements `_serve`, which ends soon after `_stopped` is set, and starts `_thread` when it is ready.

    Args:
        name: The name of what comes.
    """

    def __init__(self, name: str) -> None:
        self._stopped = threading.Event()
        self._pool = ThreadPoolExecutor(1, f"gateway-{name}-lines")
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), name=f"gateway-{name}", daemon=True)

    def close(self) -> None:
        """Takes no more, and returns when what has come is written, or has waited for Kafka for some time."""
        self._stopped.set()
        self._thread.join(_CLOSE_SECONDS)
        self._pool.shutdown(wait=False)

    async def _serve(self) -> None:
        raise NotImplementedError


class Packets(asyncio.DatagramProtocol):
    """Hands packets on, with the address of their sender."""

    def __init__(self, take: Callable[[str, bytes], None]) -> None:
        self._take = take

    def datagram_received(self, data: bytes, addr: tuple[str | Any, int]) -> None:
        self._take(address(addr), data)


def address(peer: tuple[str | Any, ...]) -> str:
    """The address of a peer; one of IPv4 as such, though it came to a socket of IPv6.

    >>> address(("::ffff:192.0.2.7", 514)), address(("fe80::1%eth0", 514))
    ('192.0.2.7', 'fe80::1%eth0')
    """
    return str(peer[0]).removeprefix("::ffff:")
