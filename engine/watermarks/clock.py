"""The clock of one source partition: what is known of its event time from its messages so far."""

from __future__ import annotations

from dataclasses import dataclass, field

from engine.spec.duration import NEVER
from engine.watermarks.marker import Marker


@dataclass
class PartitionClock:
    """The event time and arrival times known of one source partition, from its markers so far.

    Attributes:
        max_time: Greatest event time of its records; `NEVER` without records.
        writer_watermark: Greatest watermark of its writer; ``None`` if its log carries none.
        last: Greatest arrival time of its messages, heartbeats included.
        last_record: Greatest arrival time of its messages that are no heartbeats; before the first such message, the
            arrival time of the first heartbeat.
        lateness: For `LearnedLateness`: for each block of event time, the number of records by their lateness.
    """

    max_time: int = NEVER
    writer_watermark: int | None = None
    last: int = NEVER
    last_record: int = NEVER
    lateness: dict[str, dict[str, int]] = field(default_factory=dict)

    def take(self, marker: Marker) -> None:
        """Updates the clock from a marker."""
        self.max_time = max(self.max_time, marker.max_time)
        if marker.writer_watermark is not None:
            before = NEVER if self.writer_watermark is None else self.writer_watermark
            self.writer_watermark = max(before, marker.writer_watermark)
        self.last = max(self.last, marker.last)
        self.last_record = max(marker.first if self.last_record == NEVER else self.last_record, marker.last_record)
