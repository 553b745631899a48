"""The watermark of a job with one or several inputs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from engine.spec.duration import NEVER
from engine.spec.inputs import INPUT
from engine.spec.log_place import NEWEST, WRITER, Times, place
from engine.spec.source import Source
from engine.watermarks import Marker, PartitionClock, WatermarkTracker


class InputClocks:
    """The watermark of a job: the minimum over its inputs that hold it and are not silent. It never goes back.

    The watermark waits for an input that has had no message yet. If all inputs are silent, it is the greatest of their
    watermarks. In processing time it is the clock, and no record is late.

    Args:
        inputs: The inputs, with their watermark strategies.
        snapshot: The result of `snapshot`; empty at a first start.
    """

    def __init__(self, inputs: Sequence[Source], snapshot: dict[str, Any] | None = None) -> None:
        self.inputs = inputs
        snapshot = snapshot or {}
        kept = snapshot.get("inputs", [snapshot])
        kept = [*kept, *({} for _ in inputs[len(kept) :])]
        self.trackers = [
            WatermarkTracker.restore(s.watermark, was, s.formats) for s, was in zip(inputs, kept, strict=False)
        ]
        self.by_clock = any(source.clock == "processing" for source in inputs)
        self.watermark: int = self.clock if self.by_clock else snapshot.get("watermark", NEVER)

    @classmethod
    def of_shard(cls, inputs: Sequence[Source], shard: int, shards: int, snapshot: dict[str, Any]) -> InputClocks:
        """The clocks of a shard that reads messages directly: of inputs without broadcast it has its own partitions."""
        return cls([_own(source, shard, shards) for source in inputs], snapshot)

    def advance(self, markers: Iterable[Marker]) -> int:
        """Takes in the markers of a micro-batch and returns the watermark after it."""
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

    def in_log(self, records: pa.Table) -> Times:
        """For each record the watermark in the log of its partition before its message; `NEVER` where it is not known.

        Args:
            records: Records of a micro-batch whose markers were not taken in yet. Those for which the log decides have
                their place in it, see `engine.spec.log_place`.
        """
        here = place(records.schema.metadata)
        if here is None:
            return np.full(records.num_rows, NEVER, np.int64)
        number = records.column(INPUT)[0].as_py() if INPUT in records.schema.names else 0
        tracker = self.trackers[number]
        clock = tracker.clocks.get(here, PartitionClock())
        writer, newest = (records.column(name).to_numpy() for name in (WRITER, NEWEST))
        return tracker.config.in_log(clock, writer, newest)

    @property
    def clock(self) -> int:
        """Processing time: the greatest arrival time in any input so far."""
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
