"""Time and waiting, injected: the clock of live runs; tests have one that jumps."""

from __future__ import annotations

import threading
import time
from typing import Protocol


class Clock(Protocol):
    """Tells the time and waits."""

    def now(self) -> int:
        """Epoch milliseconds."""

    def wait_until(self, instant: int, stop: threading.Event) -> None:
        """Returns at ``instant`` (epoch ms), or as soon as ``stop`` is set."""


class WallClock:
    """The machine's own clock."""

    def now(self) -> int:
        """Epoch milliseconds."""
        return time.time_ns() // 1_000_000

    def wait_until(self, instant: int, stop: threading.Event) -> None:
        """Sleeps in short turns, so that a step of the clock does no lasting harm."""
        while not stop.is_set() and (left := instant - self.now()) > 0:
            stop.wait(min(left / 1000, 1.0))
