"""The base of all triggers, and the rules by which they are evaluated.

In each micro-batch triggers are evaluated at three kinds of moments, in this order:

1. *clock*: processing time has advanced. All windows are evaluated, without the records of the micro-batch.
2. *record*: after each record, in order of arrival, the windows in which it lies. This is done only for triggers that
   contain `AfterCount` or a `CustomTrigger`.
3. *watermark*: the watermark has advanced. All windows are evaluated.

If the trigger is ready, the window fires a *pane*, provided that it has had a record since it last fired. Then counts
and times start afresh. A window whose allowed lateness is over fires once more if it has records that were in no pane
yet, so no trigger loses data.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import polars as pl


class Trigger(ABC):  # noqa: B024
    """Says when a window fires; a value without state."""

    @property
    def parts(self) -> tuple[Trigger, ...]:
        """The triggers of which this one is made."""
        return ()

    @property
    def by_record(self) -> bool:
        """Whether a single record can make this trigger ready."""
        return any(part.by_record for part in self.parts)

    @property
    def shown(self) -> tuple[str, ...]:
        """The columns that it sees of a window, besides key, bounds and aggregates."""
        return tuple(dict.fromkeys(name for part in self.parts for name in part.shown))


class CustomTrigger(Trigger):
    """Base of a user's own trigger, which says for many windows at once which of them are ready."""

    @property
    def by_record(self) -> bool:
        """True: a custom trigger is evaluated after each record."""
        return True

    @property
    def shown(self) -> tuple[str, ...]:
        """Number of new records, watermark, processing time."""
        return ("fresh", "watermark", "clock")

    @abstractmethod
    def should_fire(self, windows: pl.DataFrame) -> pl.Series:
        """Whether each window is ready; called only for windows with records since they last fired.

        Args:
            windows: A row for each window: key, ``window_start``, ``window_end``, ``fresh`` (records since it last
                fired), ``watermark``, ``clock``, and the aggregates of the job as they would be emitted now.

        Returns:
            A boolean for each row, which must follow from that row alone.
        """

    def fires_one(self, window: dict[str, Any]) -> bool:
        """Calls `should_fire` for one window; used by the reference."""
        return bool(self.should_fire(pl.DataFrame([window]))[0])
