"""Event-time windows and the panes they share.

A window is [start, end) in epoch milliseconds. Sliding windows are unions of panes, one slide long: a record is
aggregated into its one pane, and each window is put together from the panes below it.
"""

from __future__ import annotations

from dataclasses import dataclass

from engine.errors import NewnormalError
from engine.time import duration_ms


@dataclass(frozen=True)
class Sliding:
    """Windows of ``size``, one starting every ``every``.

    Raises:
        NewnormalError: ``WINDOW_INVALID`` if ``size`` is no multiple of ``every``.

    >>> Sliding("60s", every="10s").panes_per_window
    6
    """

    size: str
    every: str

    def __post_init__(self) -> None:
        if self.pane_ms <= 0 or self.size_ms <= 0 or self.size_ms % self.pane_ms:
            raise NewnormalError(
                "WINDOW_INVALID",
                f"size {self.size} is no multiple of every {self.every}",
                "window",
                "e.g. 60s every 10s",
            )

    @property
    def size_ms(self) -> int:
        """Length of a window, milliseconds."""
        return duration_ms(self.size, "window.size")

    @property
    def pane_ms(self) -> int:
        """Length of a pane, milliseconds."""
        return duration_ms(self.every, "window.every")

    @property
    def panes_per_window(self) -> int:
        """How many panes make a window."""
        return self.size_ms // self.pane_ms

    def pane_start(self, time: int) -> int:
        """First instant of the pane in which ``time`` lies."""
        return time - time % self.pane_ms

    def ends_of(self, pane_start: int) -> list[int]:
        """Ends of all windows that contain the pane, ascending."""
        return [pane_start + (i + 1) * self.pane_ms for i in range(self.panes_per_window)]


class Tumbling(Sliding):
    """Windows of ``size``, side by side.

    >>> Tumbling("10s").ends_of(20_000)
    [30000]
    """

    def __init__(self, size: str) -> None:
        super().__init__(size, every=size)
