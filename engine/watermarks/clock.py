"""The clock of one source partition: what its messages have told of event time so far."""

from __future__ import annotations

from dataclasses import dataclass, field

from engine.spec.duration import NEVER
from engine.watermarks.marker import Marker


@dataclass
class Clock:
    """How far one source partition has come: of each field of `Marker` the greatest; until it spoke, its beginning.

    Attributes:
        lateness: What a strategy that learns has learned.
    """

    max_time: int = NEVER
    vouched: int | None = None
    last: int = NEVER
    spoke: int = NEVER
    lateness: dict[str, dict[str, int]] = field(default_factory=dict)

    def take(self, marker: Marker) -> None:
        """Takes in what a marker tells."""
        self.max_time = max(self.max_time, marker.max_time)
        if marker.vouched is not None:
            self.vouched = marker.vouched if self.vouched is None else max(self.vouched, marker.vouched)
        self.last = max(self.last, marker.last)
        self.spoke = max(marker.first if self.spoke == NEVER else self.spoke, marker.spoke)
