"""Session windows; the global window, and policy windows, which have a trigger and an evictor instead of a span."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from engine.spec.duration import END_OF_TIME, NEVER, DurationField
from engine.triggers import Trigger
from engine.windows.evictors import Evictor
from engine.windows.window import Spans, Times, Window, positive


@dataclass(frozen=True)
class Session(Window):
    """A session of activity without a pause of ``gap`` or more: from its first record to ``gap`` after its last.

    Each record opens the span [time, time + gap). Overlapping spans of a key are merged into one session.

    >>> Session("30s").spans(np.array([5_000])).ends.tolist()
    [35000]
    """

    merges: ClassVar[bool] = True
    gap: DurationField = DurationField("window.gap")

    def __post_init__(self) -> None:
        positive(self.gap, "window.gap")

    def spans(self, times: Times) -> Spans:
        """The span that each record opens."""
        return Spans(np.arange(len(times)), times, times + int(self.gap))


@dataclass(frozen=True)
class Global(Window):
    """One window for all time; it gives results when its trigger fires, and when the input ends."""

    def spans(self, times: Times) -> Spans:
        """The span of all time, for each record."""
        n = len(times)
        return Spans(np.arange(n), np.full(n, NEVER, np.int64), np.full(n, END_OF_TIME, np.int64))


@dataclass(frozen=True)
class Policy(Global):
    """Each key has one window; ``trigger`` says when it gives a result, and ``evict`` which records count.

    ``Policy(AfterCount(10), KeepLast(100))`` gives a result after every 10 records, over the last 100.
    """

    trigger: Trigger
    evict: Evictor
