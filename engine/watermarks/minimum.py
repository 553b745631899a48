"""Combines the clocks of the source partitions into one watermark that never goes back."""

from __future__ import annotations

from collections.abc import Container, Iterable
from dataclasses import astuple, dataclass, field
from typing import Any

from engine.spec.duration import NEVER
from engine.watermarks.clock import Marker, PartitionClock
from engine.watermarks.strategy import WatermarkStrategy


@dataclass
class WatermarkTracker:
    """The watermark of one input: the minimum over its partitions that are not idle. It never goes back.

    Attributes:
        silent: True if every partition is idle, so that other inputs of the job do not wait for this one.

    >>> from engine.watermarks import BoundedOutOfOrderness
    >>> tracker = WatermarkTracker(BoundedOutOfOrderness("1s", idle_after="10s"))
    >>> tracker.advance([Marker("t", 0, 50_000, None, 0, 0, 0), Marker("t", 1, 20_000, None, 0, 0, 0)])
    19000
    >>> tracker.advance([Marker("t", 0, 60_000, None, 11_000, 11_000, 11_000)])
    19000
    >>> tracker.advance([Marker("t", 1, NEVER, None, 11_000, 11_000, NEVER)])
    59000
    """

    config: WatermarkStrategy
    clocks: dict[tuple[str, int], PartitionClock] = field(default_factory=dict)
    watermark: int = NEVER
    silent: bool = False

    def advance(self, markers: Iterable[Marker]) -> int:
        """Takes in the markers of a micro-batch and returns the watermark after it."""
        for marker in sorted(markers, key=_in_log_order):
            clock = self.clocks.setdefault((marker.topic, marker.partition), PartitionClock())
            if marker.observed:
                self.config.learn(clock, marker.observed)
            clock.take(marker)
        if not self.clocks or any(place not in self.clocks for place in self.config.expected):
            return self.watermark
        clocks = self.clocks.values()
        active = [clock for clock in clocks if self.config.is_active(clock)]
        self.silent = not active
        silent = max(clock.max_time for clock in clocks)  # if all partitions are idle, no older record is expected
        self.watermark = max(self.watermark, min((self.config.watermark(clock) for clock in active), default=silent))
        return self.watermark

    @property
    def clock(self) -> int:
        """Processing time: the greatest arrival time seen, heartbeats included; `NEVER` before the first message."""
        return max((clock.last for clock in self.clocks.values()), default=NEVER)

    def snapshot(self) -> dict[str, Any]:
        """The state as JSON values."""
        rows = [[topic, p, *astuple(clock)] for (topic, p), clock in sorted(self.clocks.items())]
        return {"watermark": self.watermark, "clocks": rows, "silent": self.silent}

    @classmethod
    def restore(
        cls, config: WatermarkStrategy, snapshot: dict[str, Any], topics: Container[str] | None = None
    ) -> WatermarkTracker:
        """Inverse of `snapshot`; only with the clocks of some topics: one that is no longer read holds nothing up."""
        rows = snapshot.get("clocks", [])
        clocks = {(topic, p): PartitionClock(*rest) for topic, p, *rest in rows if topics is None or topic in topics}
        return cls(config, clocks, snapshot.get("watermark", NEVER), snapshot.get("silent", False))


def _in_log_order(marker: Marker) -> tuple[str, int, int, int, int, int]:
    return marker.topic, marker.partition, marker.offset, marker.first, marker.last, marker.max_time
