"""The host names to which a web server answers; others are refused as a protection against DNS rebinding."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Collection
from urllib.parse import urlsplit

LOCAL = frozenset({"localhost", "127.0.0.1", "::1"})
_EVERYWHERE = frozenset({"0.0.0.0", "::"})
_HEADER = re.compile(r"[\w.:\[\]-]{1,300}", re.ASCII)


def allowed(header: str, listening: str = "127.0.0.1", more: Collection[str] = ()) -> bool:
    """Whether a request with this Host header is answered.

    A server that listens everywhere answers to every IP address, since a browser that sends an address as the host was
    not led here by a name.

    Args:
        header: The Host header, with or without a port.
        listening: The address that the server listens on.
        more: Further names; ``*``: any.

    >>> allowed("LOCALHOST:8880"), allowed("[::1]:8880"), allowed("evil.example:8880"), allowed("192.0.2.1")
    (True, True, False, False)
    >>> allowed("192.0.2.1:8880", "0.0.0.0"), allowed("evil.example", "0.0.0.0"), allowed("box", more=["box"])
    (True, False, True)
    """
    if "*" in more:
        return True
    name = _name(header)
    if name is None:
        return False
    if name in LOCAL or name in {each.lower() for each in (listening, *more)}:
        return True
    return listening in _EVERYWHERE and _is_address(name)


def _name(header: str) -> str | None:
    if not _HEADER.fullmatch(header):
        return None
    try:
        return urlsplit(f"//{header}").hostname
    except ValueError:
        return None


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
