"""The clock of this machine, for programs; what computes on event time gets the time from its caller."""

from __future__ import annotations

import time


def now_ms() -> int:
    """The time now, epoch milliseconds."""
    return int(time.time() * 1000)
