"""Waits for a condition that nobody signals, by looking again and again."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def until(look: Callable[[], T], seconds: float, every: float = 0.05) -> T:
    """Looks until the answer is true, for some seconds at most; returns the last answer.

    >>> until(lambda: 3, seconds=0.0), until(lambda: [], seconds=0.0)
    (3, [])
    """
    deadline = time.monotonic() + seconds
    while not (answer := look()) and time.monotonic() < deadline:
        time.sleep(every)
    return answer
