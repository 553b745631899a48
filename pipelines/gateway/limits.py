"""Bounds what the gateway holds, and how fast one sender may be."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable

_BURST_SECONDS = 5.0
_MOST_SENDERS = 10_000


class InFlight:
    """Counts the bytes of requests that are not answered yet; safe to use from several threads.

    Args:
        most: The bound.
    """

    def __init__(self, most: int) -> None:
        self._most, self._held = most, 0
        self._lock = threading.Lock()

    @property
    def held(self) -> int:
        """The bytes now."""
        return self._held

    def reserve(self, count: int) -> bool:
        """Adds bytes; false if they would exceed the bound."""
        with self._lock:
            if self._held + count > self._most:
                return False
            self._held += count
            return True

    def release(self, count: int) -> None:
        """Takes bytes back."""
        with self._lock:
            self._held -= count


class Rate:
    """Bytes per second of each sender, which may send those of some seconds at once.

    Args:
        rate: Bytes per second; 0: no limit.
        clock: Gives the time in seconds.
    """

    def __init__(self, rate: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate, self._clock = rate, clock
        self._used: dict[str, tuple[float, float]] = {}

    def wait(self, sender: str) -> int:
        """Whole seconds until a sender may send; 0: now."""
        if not self._rate:
            return 0
        over = self._left(sender) - self._rate * _BURST_SECONDS
        return math.ceil(over / self._rate) if over > 0 else 0

    def charge(self, sender: str, count: int) -> None:
        """Counts what a sender has sent."""
        if not self._rate:
            return
        if len(self._used) >= _MOST_SENDERS:
            self._used = {each: used for each, used in self._used.items() if self._left(each) > 0}
        self._used[sender] = (self._left(sender) + count, self._clock())

    def _left(self, sender: str) -> float:
        """Bytes sent that the rate has not yet made up for."""
        used, at = self._used.get(sender, (0.0, 0.0))
        return max(0.0, used - (self._clock() - at) * self._rate)
