"""The clock of one source partition: what its messages have told of event time so far."""

from __future__ import annotations

from dataclasses import dataclass, field

from engine.spec.duration import NEVER
from engine.watermarks.marker import Marker


@dataclass
class PartitionClock:
    """How far one source partition has come: of each field of `Marker` the greatest; until it spoke, its beginning.

    Attributes:
        lateness: What a strategy that learns has learned.
    """

    max_time: int = NEVER
    writer_watermark: int | None = None
    last: int = NEVER
    spoke: int = NEVER
    lateness: dict[str, dict[str, int]] = field(default_factory=dict)

    def take(self, marker: Marker) -> None:
        """Takes in what a marker tells."""
        self.max_time = max(self.max_time, marker.max_time)
        if marker.writer_watermark is not None:
            known = NEVER if self.writer_watermark is None else self.writer_watermark
            self.writer_watermark = max(known, marker.writer_watermark)
        self.last = max(self.last, marker.last)
        self.spoke = max(marker.first if self.spoke == NEVER else self.spoke, marker.spoke)
