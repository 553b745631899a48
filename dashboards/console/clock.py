"""The time of the server: the page shows how long ago something was by it, not by the reader's clock."""

from __future__ import annotations

import time


def now_ms() -> int:
    """The time now, epoch ms."""
    return int(time.time() * 1000)
