"""What a trigger is.

It is looked at at three kinds of moments of a micro-batch, in this order:

1. *clock*: processing time has moved on. All windows are looked at, without the batch's records.
2. *record*: after each record, in order of arrival, the windows it came into; only for a trigger that has `AfterCount`
   or an own class in it.
3. *watermark*: the watermark has moved on. All windows are looked at.

A trigger that is ready fires the window, if that has had a record since it fired last: the records since then are its
*pane*. Then counts and times start afresh. A window whose allowed lateness is over fires once more if it has records
that were in no pane yet: whatever the trigger, nothing is lost.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import polars as pl


class Trigger(ABC):  # noqa: B024
    """When a window fires; a value without state."""

    @property
    def parts(self) -> tuple[Trigger, ...]:
        """The triggers that it is made of."""
        return ()

    @property
    def by_record(self) -> bool:
        """Whether a record can make it ready."""
        return any(part.by_record for part in self.parts)


class CustomTrigger(Trigger):
    """A trigger of one's own: a subclass says for many windows at once which are ready."""

    @property
    def by_record(self) -> bool:
        """One's own trigger is looked at after each record."""
        return True

    @abstractmethod
    def should_fire(self, windows: pl.DataFrame) -> pl.Series:
        """Whether each window is ready; only windows with records in the pane are asked about.

        Args:
            windows: A row a window: the key, ``window_start``, ``window_end``, ``fresh`` (records in the pane),
                ``watermark``, ``clock``, and the results of the job's aggregates as they would be emitted now.

        Returns:
            Booleans, one a row. They must follow from the row alone.
        """

    def fires_one(self, window: dict[str, Any]) -> bool:
        """`should_fire` of one window, for the reference."""
        return bool(self.should_fire(pl.DataFrame([window]))[0])
