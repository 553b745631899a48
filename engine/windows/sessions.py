"""Windows that the records themselves decide: sessions of activity, and the one window of all time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from engine.spec.duration import END_OF_TIME, NEVER, DurationField
from engine.windows.window import Spans, Times, Window, positive


@dataclass(frozen=True)
class Session(Window):
    """Activity without a pause of ``gap`` or more: from the first record to ``gap`` after the last.

    A record opens the span [time, time + gap); spans of a key that overlap are one session.

    >>> Session("30s").spans(np.array([5_000])).ends.tolist()
    [35000]
    """

    merges: ClassVar[bool] = True
    gap: DurationField = DurationField("window.gap")

    def __post_init__(self) -> None:
        positive(self.gap, "window.gap")

    def spans(self, times: Times) -> Spans:
        """The span that each of some records opens."""
        return Spans(np.arange(len(times)), times, times + int(self.gap))


@dataclass(frozen=True)
class Global(Window):
    """One window a key for all time; its results come from triggers, and when the input ends."""

    def spans(self, times: Times) -> Spans:
        """The span of all time for each of some records."""
        n = len(times)
        return Spans(np.arange(n), np.full(n, NEVER, np.int64), np.full(n, END_OF_TIME, np.int64))
