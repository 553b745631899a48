"""How much of an answer over HTTP is read, since whoever answers may never come to an end."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress

import httpx

AS_IT_IS = {"Accept-Encoding": "identity"}
"""Asks for an answer without compression: a little of a compressed one may be much."""


def beginning(answer: httpx.Response, most: int, seconds: float) -> bytes:
    """What has come of the body of an answer that is streamed, before its end or a bound.

    Args:
        answer: The answer, whose status and headers have come; a compression is not undone.
        most: Bytes.
        seconds: How long is read, but for one wait as long as the client's own limit.
    """
    body = b""
    with suppress(httpx.HTTPError, ValueError):
        for part in _parts(answer, seconds):
            body += part
            if len(body) >= most:
                break
    return body[:most]


def whole(answer: httpx.Response, most: int, seconds: float) -> bytes:
    """The body of an answer that is streamed; arguments as `beginning`.

    Raises:
        ValueError: If it has more bytes or takes longer.
        httpx.HTTPError: If it breaks off.
    """
    body = bytearray()
    for part in _parts(answer, seconds):
        body += part
        if len(body) > most:
            raise ValueError(f"it has more than {most:,} bytes")
    return bytes(body)


def _parts(answer: httpx.Response, seconds: float) -> Iterator[bytes]:
    end = time.monotonic() + seconds
    for part in answer.iter_raw():
        yield part
        if time.monotonic() > end:
            raise ValueError(f"it has not ended after {seconds:g} s")
