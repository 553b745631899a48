"""Refuses what a page of another site has a browser send: cross-site request forgery."""

from __future__ import annotations

from urllib.parse import urlsplit

from fastapi import Request

from engine.spec.errors import NewnormalError

HEADER = "X-Newnormal"
"""A page of another site cannot send this header, as the console never allows it to."""

_SAME = frozenset({"same-origin", "none"})


def own_page(request: Request) -> None:
    """Refuses a request that another page than the console's own may have sent.

    Raises:
        NewnormalError: ``ACTION_REFUSED``.
    """
    headers, host = request.headers, request.headers.get("host", "")
    origin = headers.get("origin")
    alien = origin is not None and urlsplit(origin).netloc.lower() != host.lower()
    if alien or headers.get("sec-fetch-site", "same-origin") not in _SAME:
        raise refused("the request comes from a page of another site", "a request from the console's own page")
    if headers.get(HEADER) != "console":
        raise refused(f"the header {HEADER} is missing", f"{HEADER}: console")


def refused(why: str, accepted: str) -> NewnormalError:
    """The error of a request that is not carried out."""
    return NewnormalError("ACTION_REFUSED", why, "console", accepted, "nothing was written")
