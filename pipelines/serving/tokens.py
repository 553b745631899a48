"""Compares tokens without telling by the time it takes how much of a guess was right."""

from __future__ import annotations

import hmac
from collections.abc import Collection


def has_token(authorization: str, token: str, schemes: Collection[str] = ("bearer",)) -> bool:
    """Whether a header ``Authorization`` holds a token, after one of some schemes (in lower case).

    >>> has_token("Bearer abc", "abc"), has_token("Bearer abd", "abc"), has_token("Basic abc", "abc")
    (True, False, False)
    """
    scheme, _, given = authorization.partition(" ")
    return scheme.lower() in schemes and same(given.strip(), token)


def same(text: str, other: str) -> bool:
    """Whether two texts are equal, in a time that does not tell where they differ."""
    return hmac.compare_digest(text.encode(), other.encode())
