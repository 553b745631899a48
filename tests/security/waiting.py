"""Waits for a condition."""

from __future__ import annotations

import time
from collections.abc import Callable


def until(what: str, done: Callable[[], object], seconds: float = 120) -> None:
    """Returns when ``done`` is true; fails if that takes too long."""
    deadline = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < deadline, f"not within {seconds:g} s: {what}"
        time.sleep(0.2)
