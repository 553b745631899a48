"""Window join: all pairs of two streams with the same key and in the same window, when the window closes."""

from __future__ import annotations

from dataclasses import dataclass

from engine.operators.two_sided import TwoSided
from engine.windows import Sliding

END = "window_end"


@dataclass(frozen=True)
class WindowJoin(TwoSided):
    """Pairs of each window, with ``window_start`` and ``window_end``; a record is late if its first window is closed.

    Args:
        window: Tumbling or sliding windows.
    """

    window: Sliding

    def result_time(self, time: str) -> str:
        return END
