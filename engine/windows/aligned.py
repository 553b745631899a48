"""Tumbling and sliding windows, and the slices that sliding windows share.

Where the size is a multiple of the slide, a slice is as long as one slide, and a window is a union of slices. Each
record is aggregated into its one slice, and each window is put together from its slices.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import polars as pl

from engine.spec.duration import DurationField
from engine.spec.grid import Grid
from engine.windows.window import Spans, Times, Window, positive

Instants = TypeVar("Instants", int, Times, pl.Expr)


@dataclass(frozen=True)
class Sliding(Window):
    """Windows of length ``size``, one starting every ``every``, counted from 1970-01-01T00:00:00Z plus ``offset``.

    The offset may begin with a minus: ``Tumbling("1d", "-8h")`` is a day in UTC+8. Windows that are shorter than the
    slide have gaps between them; a record in a gap lies in no window, and is not late. Windows whose size is a multiple
    of the slide share slices, which costs less where they overlap often.

    Raises:
        NewnormalError: ``WINDOW_INVALID`` if ``size`` or ``every`` is not above 0.

    >>> Sliding("60s", every="10s").slices_per_window
    6
    """

    size: DurationField = DurationField("window.size")
    every: DurationField = DurationField("window.every")
    offset: DurationField = DurationField("window.offset", "0s", signed=True)

    def __post_init__(self) -> None:
        positive(self.size, "window.size")
        positive(self.every, "window.every")

    def spans(self, times: Times) -> Spans:
        """The windows in which each record lies.

        >>> spans = Sliding("10s", every="15s").spans(np.array([1_000, 12_000]))
        >>> spans.rows.tolist(), spans.starts.tolist()
        ([0], [0])
        """
        n, every = self.most_windows, self.slice_ms
        first = self.slice_start(times) - (n - 1) * every
        starts = (first[:, None] + np.arange(n) * every).ravel()
        rows = np.repeat(np.arange(len(times)), n)
        if not self.shares_slices:
            inside = starts + self.size_ms > times[rows]
            rows, starts = rows[inside], starts[inside]
        return Spans(rows, starts, starts + self.size_ms)

    @property
    def shares_slices(self) -> bool:
        """Whether each window is a union of slices."""
        return self.size_ms % self.slice_ms == 0

    @property
    def most_windows(self) -> int:
        """In how many windows a record lies at the most."""
        return -(-self.size_ms // self.slice_ms)

    @property
    def offset_ms(self) -> int:
        """Start of windows, in milliseconds after a multiple of ``every``."""
        return self.offset % self.slice_ms

    @property
    def size_ms(self) -> int:
        """Length of a window, milliseconds."""
        return int(self.size)

    @property
    def slice_ms(self) -> int:
        """Length of a slide, which is that of a slice, milliseconds."""
        return int(self.every)

    @property
    def slices_per_window(self) -> int:
        """How many slices make a window, where windows share slices."""
        return self.size_ms // self.slice_ms

    @property
    def ends(self) -> Grid:
        """The instants at which windows end.

        >>> Sliding("15s", every="10s", offset="3s").ends
        Grid(every=10000, offset=8000)
        """
        return Grid(self.slice_ms, (self.offset_ms + self.size_ms) % self.slice_ms)

    def slice_start(self, time: Instants) -> Instants:
        """Start of the slice in which ``time`` lies; ``time`` is an integer, an array or an expression.

        >>> Sliding("20s", every="10s", offset="3s").slice_start(25_000)
        23000
        """
        return time - (time - self.offset_ms) % self.slice_ms

    def ends_of(self, slice_start: int) -> list[int]:
        """Ends of all windows that contain the slice, ascending."""
        return [slice_start + (i + 1) * self.slice_ms for i in range(self.slices_per_window)]

    def ends_between(self, slice_start: int, after: int, until: int) -> range:
        """Ends of the windows that contain the slice, those after an instant and up to another one.

        >>> list(Sliding("30s", every="10s").ends_between(0, 10_000, 25_000))
        [20000]
        """
        first = slice_start + self.slice_ms
        if after >= first:
            first = slice_start + ((after - slice_start) // self.slice_ms + 1) * self.slice_ms
        return range(first, min(slice_start + self.size_ms, until) + 1, self.slice_ms)


class Tumbling(Sliding):
    """Windows of length ``size``, side by side.

    >>> Tumbling("10s").ends_of(20_000)
    [30000]
    """

    def __init__(self, size: str | int, offset: str | int = "0s") -> None:
        super().__init__(size, every=size, offset=offset)
