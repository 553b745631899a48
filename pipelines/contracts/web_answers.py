"""How much of an answer over HTTP is read and shown: whoever answers may never end, and may repeat what is secret."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from urllib.parse import urlsplit

import httpx

from engine.explain.redaction import redacted
from engine.printing import visible

AS_IT_IS = {"Accept-Encoding": "identity"}
"""Asks for an answer without compression: a little of a compressed one may be much."""
LOOKED_AT = 4_000
"""Bytes of an answer in which secrets are looked for."""


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


def quoted(text: str, secrets: Iterable[str | None], most: int = 200) -> str:
    """The beginning of an answer, to be printed: without secrets, should it repeat them or parts of them."""
    return visible(redacted(text[:LOOKED_AT], secrets)[:most])


def origin(url: str) -> str:
    """Scheme, host and port: the rest of a URL may be a secret.

    >>> origin("https://me:word@hooks.example.org/services/secret")
    'https://hooks.example.org'
    """
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"


def _parts(answer: httpx.Response, seconds: float) -> Iterator[bytes]:
    end = time.monotonic() + seconds
    for part in answer.iter_raw():
        yield part
        if time.monotonic() > end:
            raise ValueError(f"it has not ended after {seconds:g} s")
