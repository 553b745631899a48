"""Stands for the outside of the sources of data: a sink that keeps everything, and a clock that jumps."""

from __future__ import annotations

import threading

import polars as pl

from datagen.groundtruth import GroundTruth
from pipelines.contracts.records import Placement


class CollectSink:
    """Keeps everything in memory."""

    def __init__(self) -> None:
        self.frames: list[pl.DataFrame] = []
        self.lines: list[pl.DataFrame] = []
        self.rows: list[GroundTruth] = []
        self.placements: list[Placement] = []

    def telemetry(self, frame: pl.DataFrame) -> None:
        """Keeps samples."""
        self.frames.append(frame)

    def logs(self, frame: pl.DataFrame) -> None:
        """Keeps log lines."""
        self.lines.append(frame)

    def truth(self, rows: list[GroundTruth]) -> None:
        """Keeps ground truth."""
        self.rows += rows

    def topology(self, rows: list[Placement]) -> None:
        """Keeps the topology."""
        self.placements += rows

    def flush(self) -> None:
        """Has nothing to do."""


class VirtualClock:
    """A clock that jumps to whatever is waited for.

    >>> clock = VirtualClock(1_000)
    >>> clock.wait_until(5_000, threading.Event()); clock.now()
    5000
    """

    def __init__(self, now: int = 0) -> None:
        self._now = now

    def now(self) -> int:
        """Epoch milliseconds."""
        return self._now

    def wait_until(self, instant: int, stop: threading.Event) -> None:
        """Is there at once."""
        if not stop.is_set():
            self._now = max(self._now, instant)
