"""One watermark for a job: the least of its inputs that hold it and are not silent."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from engine.spec.duration import NEVER
from engine.spec.source import Source
from engine.watermarks import Marker, WatermarkTracker


class InputClocks:
    """The watermark of a job: the least of its inputs' that hold it and are not silent; it never goes back.

    An input is waited for until it has said something. Where all are silent, nothing is out of order any more.
    By processing time the watermark is the clock: what comes is never older.

    Args:
        inputs: With their watermark strategies.
        snapshot: As `snapshot` gave it; empty at a first start.
    """

    def __init__(self, inputs: Sequence[Source], snapshot: dict[str, Any] | None = None) -> None:
        self.inputs = inputs
        snapshot = snapshot or {}
        kept = snapshot.get("inputs", [snapshot])
        kept = [*kept, *({} for _ in inputs[len(kept) :])]
        self.trackers = [WatermarkTracker.restore(s.watermark, was) for s, was in zip(inputs, kept, strict=False)]
        self.by_clock = any(source.clock == "processing" for source in inputs)
        self.watermark: int = self.clock if self.by_clock else snapshot.get("watermark", NEVER)

    @classmethod
    def of_shard(cls, inputs: Sequence[Source], shard: int, shards: int, snapshot: dict[str, Any]) -> InputClocks:
        """Those of a shard that reads its messages directly: of what is not broadcast it sees its own partitions."""
        return cls([_own(source, shard, shards) for source in inputs], snapshot)

    def advance(self, markers: Iterable[Marker]) -> int:
        """Takes in what a micro-batch tells and returns the watermark after it."""
        markers = list(markers)
        for source, tracker in zip(self.inputs, self.trackers, strict=True):
            tracker.advance(m for m in markers if m.topic in source.formats)
        holding = [t for t, s in zip(self.trackers, self.inputs, strict=True) if s.holds] or self.trackers
        if self.by_clock:
            self.watermark = self.clock
            return self.watermark
        active = [tracker.watermark for tracker in holding if not tracker.silent]
        now = min(active) if active else max(tracker.watermark for tracker in holding)
        self.watermark = max(self.watermark, now)
        return self.watermark

    @property
    def clock(self) -> int:
        """Processing time: the greatest arrival time seen in any input."""
        return max(tracker.clock for tracker in self.trackers)

    def snapshot(self) -> dict[str, Any]:
        """The state as JSON values."""
        if len(self.trackers) == 1:
            return self.trackers[0].snapshot()
        return {"watermark": self.watermark, "inputs": [tracker.snapshot() for tracker in self.trackers]}


def _own(source: Source, shard: int, shards: int) -> Source:
    if source.broadcast:
        return source
    expected = tuple((topic, p) for topic, p in source.watermark.expected if p % shards == shard)
    watermark = replace(source.watermark, expected=expected)  # type: ignore[type-var]
    return replace(source, watermark=watermark)
