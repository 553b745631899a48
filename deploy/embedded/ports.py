"""Chooses ports on the loopback interface: the usual one if it is free, else any that is."""

from __future__ import annotations

import socket
from collections.abc import Collection

HOST = "127.0.0.1"


def is_free(port: int) -> bool:
    """Whether a server could listen on ``port`` now."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as servers do: an old TIME_WAIT is no obstacle
        try:
            probe.bind((HOST, port))
            probe.listen(1)
        except OSError:
            return False
    return True


def choose(preferred: dict[str, int], taken: Collection[int] = ()) -> dict[str, int]:
    """A free port for each name, all different and none of ``taken``: the preferred one where possible."""
    chosen: dict[str, int] = {}
    for name, port in preferred.items():
        used = {*taken, *chosen.values()}
        chosen[name] = port if port not in used and is_free(port) else _any(used)
    return chosen


def _any(but: set[int]) -> int:
    while True:
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
            probe.bind((HOST, 0))
            port = int(probe.getsockname()[1])
        if port not in but:
            return port
