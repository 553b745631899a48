"""Chooses ports of an address, by default of the loopback one: the usual one if it is free, otherwise any free one.

A server listens on its port only seconds after the port was chosen. So that two supervisors that start at once do not
choose the same one, each holds a lock on every port that it chose for as long as it lives.
"""

from __future__ import annotations

import socket
from collections.abc import Iterable
from pathlib import Path
from typing import IO

from engine.locks import try_lock
from engine.private_files import own_temporary_folder
from engine.spec.errors import NewnormalError

HOST = "127.0.0.1"


def local(address: str) -> str:
    """The address at which this machine itself reaches a server that listens on ``address``.

    >>> local("0.0.0.0"), local("192.0.2.1")
    ('127.0.0.1', '192.0.2.1')
    """
    return HOST if address == "0.0.0.0" else address


def is_free(port: int, address: str = HOST) -> bool:
    """Whether a server could listen on ``port`` of ``address`` now."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as servers do; ignores an old TIME_WAIT
        try:
            probe.bind((address, port))
            probe.listen(1)
        except OSError:
            return False
    return True


class PortClaims:
    """The ports that one process has chosen; no other process of this user chooses them until it ends.

    Args:
        folder: Directory of the locks, one for each port; it must be the same for all processes that may clash.
            ``None``: one of this user's.
        address: The address of the ports.
    """

    def __init__(self, folder: Path | None = None, address: str = HOST) -> None:
        self._address = address
        self._folder = folder
        self._held: dict[int, IO[str]] = {}

    def choose(self, preferred: dict[str, int]) -> dict[str, int]:
        """A free port for each name, different from all that are claimed: the preferred one where possible."""
        return {name: port if self._claim(port) else self._any() for name, port in preferred.items()}

    def release(self, ports: Iterable[int]) -> None:
        """Gives up the claim on some ports."""
        for port in ports:
            if held := self._held.pop(port, None):
                held.close()

    def _any(self) -> int:
        while True:
            with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
                probe.bind((self._address, 0))
                port = int(probe.getsockname()[1])
            if self._claim(port):
                return port

    def _claim(self, port: int) -> bool:
        if port in self._held:
            return False
        try:
            held = try_lock((self._folder or own_temporary_folder("ports")) / f"{port}.lock")
        except (OSError, NewnormalError):  # no folder that can be written to: then whether the port is free must do
            return is_free(port, self._address)
        if held is None:
            return False
        if not is_free(port, self._address):
            held.close()
            return False
        self._held[port] = held
        return True
