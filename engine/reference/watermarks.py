"""Watermarks in plain Python: from the log of each source partition to the watermark of the job.

This was written from the section on watermarks in docs/engine.md and the docstrings of `engine.watermarks`. It keeps
every message and computes each answer anew; it uses none of production's clocks, trackers or strategies.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import groupby

from engine.reference.entries import Arrival, Entry, Heartbeat, Watermark
from engine.reference.strategies import PartitionLog, given_watermark, is_idle, log_watermark, partition_watermark
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

    def in_log(self, topic: str, partition: int) -> int:
        """The watermark that stands in the log of a partition now."""
        return log_watermark(self.source.watermark, self.logs.get((topic, partition), PartitionLog()))

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
            watermark = min(log.last_arrival if by_arrival else partition_watermark(strategy, log) for log in active)
        else:
            watermark = max(log.max_time for log in self.logs.values())
        self.watermark = max(self.watermark, watermark)


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

        self.in_log: dict[tuple[int, int], int] = {}
        """The watermark in the log before each message of the last micro-batch, by input and place in the batch."""

    def advance(self, batch: Sequence[Entry]) -> int:
        """Takes in a micro-batch; returns the watermark after it."""
        self.in_log = {}
        for message in messages(batch):
            topic, partition = batch[message[0]].topic, batch[message[0]].partition
            for number, one in enumerate(self.inputs):
                if topic not in one.source.formats:
                    continue
                self.in_log |= {(number, at): one.in_log(topic, partition) for at in message}
                for at in message:
                    one.read(batch[at])
                    self.clock = max(self.clock, batch[at].arrived)
        for one in self.inputs:
            one.advance()
        if self.by_clock:
            self.watermark = self.clock
            return self.watermark
        holding = [one for one in self.inputs if one.source.holds] or self.inputs
        waited_for = [one.watermark for one in holding if not one.silent]
        watermark = min(waited_for) if waited_for else max(one.watermark for one in holding)
        self.watermark = max(self.watermark, watermark)
        return self.watermark


def messages(batch: Sequence[Entry]) -> list[list[int]]:
    """The places of the entries that are one message: neighbours in a partition, of one kind, that arrive together."""
    by_partition: dict[tuple[str, int], list[int]] = {}
    for at, entry in enumerate(batch):
        by_partition.setdefault((entry.topic, entry.partition), []).append(at)
    some = by_partition.values()
    return [list(m) for places in some for _, m in groupby(places, lambda at: (type(batch[at]), batch[at].arrived))]
