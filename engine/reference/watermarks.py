"""Watermarks in plain Python: from the log of each source partition to the watermark of the job.

This was written from the section on watermarks in docs/engine.md and the docstrings of `engine.watermarks`. It keeps
every message and computes each answer anew; it uses none of production's clocks, trackers or strategies.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from engine.reference.entries import Arrival, Entry, Heartbeat, Watermark
from engine.reference.strategies import PartitionLog, given_watermark, is_idle, partition_watermark
from engine.spec.duration import NEVER
from engine.spec.source import Source


@dataclass
class InputWatermark:
    """The watermark of one input: the minimum over its partitions that are not idle. It never goes back.

    Attributes:
        logs: The log of each source partition so far, by topic and number.
        silent: True if every partition is idle: other inputs of the job then do not wait for this one.
    """

    source: Source
    logs: dict[tuple[str, int], PartitionLog] = field(default_factory=dict)
    watermark: int = NEVER
    silent: bool = False

    def read(self, entry: Entry) -> None:
        """Takes in one message of one partition."""
        log = self.logs.setdefault((entry.topic, entry.partition), PartitionLog())
        time = None
        if self.source.clock != "event":
            log.take(entry.arrived, is_heartbeat=False, time=entry.arrived, watermark=None)
            return
        record = entry.record if isinstance(entry, Arrival) else None
        if record is not None:
            time = record[self.source.time]
        written = entry.watermark if isinstance(entry, Watermark) else None
        watermark = given_watermark(self.source.watermark, record, written)
        if watermark is not None:
            watermark = min(watermark, entry.arrived + int(self.source.bounds.max_ahead))
        log.take(entry.arrived, isinstance(entry, Heartbeat), time, watermark)

    def advance(self) -> None:
        """Advances the watermark after a micro-batch."""
        missing = [place for place in self.source.watermark.expected if place not in self.logs]
        if missing or not self.logs:
            return
        by_arrival = self.source.clock != "event"
        strategy = self.source.watermark
        active = [log for log in self.logs.values() if by_arrival or not is_idle(strategy, log)]
        self.silent = not active
        if active:
            told = min(log.last_arrival if by_arrival else partition_watermark(strategy, log) for log in active)
        else:
            told = max(log.max_time for log in self.logs.values())
        self.watermark = max(self.watermark, told)


class JobWatermark:
    """The watermark of a job: the minimum over its inputs that hold it and are not silent. It never goes back.

    If all those inputs are silent, it is the greatest of their watermarks. In processing time it is the clock.
    """

    def __init__(self, sources: Sequence[Source]) -> None:
        self.inputs = [InputWatermark(source) for source in sources]
        self.by_clock = any(source.clock == "processing" for source in sources)
        self.watermark = NEVER
        self.clock = NEVER
        """Processing time: the greatest arrival time of any message so far, heartbeats included."""

    def advance(self, batch: Iterable[Entry]) -> int:
        """Takes in a micro-batch; returns the watermark after it."""
        for entry in batch:
            for one in self.inputs:
                if entry.topic in one.source.formats:
                    one.read(entry)
                    self.clock = max(self.clock, entry.arrived)
        for one in self.inputs:
            one.advance()
        if self.by_clock:
            self.watermark = self.clock
            return self.watermark
        holding = [one for one in self.inputs if one.source.holds] or self.inputs
        waited_for = [one.watermark for one in holding if not one.silent]
        told = min(waited_for) if waited_for else max(one.watermark for one in holding)
        self.watermark = max(self.watermark, told)
        return self.watermark
