"""What a job reads: topics, the format of each, the time column, and how far their clocks are trusted."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal

import pyarrow as pa

from engine.spec.decoder import Decoder
from engine.spec.record import Record
from engine.spec.steps import Step, after
from engine.spec.time_bounds import TimeBounds
from engine.watermarks import AscendingTimestamps, BoundedOutOfOrderness, WatermarkStrategy

TimeDomain = Literal["event", "ingestion", "processing"]
"""Which time a job works on: the records' own; their arrival at Kafka; or the shard's clock when it takes them in."""


@dataclass(frozen=True)
class Source:
    """What a job reads: topics of one record type, and how far their clocks are trusted.

    Args:
        formats: The decoder of each topic.
        record: The type of all of them.
        time: The column of the time that the job works on.
        clock: Which time the job works on. Event time is in the records; for ingestion and processing time the column
            is filled when records are read, see `timed`.
        columnar: Few large messages rather than many small ones.
        partitions: Partitions of the topics, if a record lies in the one that the hash of its key says; 0 if not.
        steps: What is done with each record before it is routed to its shard.
        holds: Whether the watermark of the job waits for this input. Not for one that the job itself feeds: each would
            wait for the other.
        broadcast: Whether all shards get all of its records: for a slow stream that concerns all keys.
        reports: Whether dead letters are written of what is refused. Of several jobs that read a topic, one does.
    """

    formats: dict[str, Decoder]
    record: type[Record]
    time: str = "time"
    watermark: WatermarkStrategy = field(default_factory=BoundedOutOfOrderness)
    bounds: TimeBounds = field(default_factory=TimeBounds)
    columnar: bool = True
    partitions: int = 0
    steps: tuple[Step, ...] = ()
    holds: bool = True
    broadcast: bool = False
    reports: bool = True
    clock: TimeDomain = "event"

    def timed(self, clock: TimeDomain, column: str) -> Source:
        """This source, working on another time; the time is in a column that the records have or get.

        By ingestion time the watermark of a partition is its greatest arrival time, heartbeats included: Kafka stamps
        the records of a partition in order. By processing time it is the shard's clock.
        """
        if clock == "event":
            return replace(self, clock=clock, time=column)
        strategy = AscendingTimestamps(self.watermark.idle_after, self.watermark.expected)
        return replace(self, clock=clock, time=column, watermark=strategy)

    def direct(self, shards: int) -> bool:
        """Whether a message's partition tells the shard of its records: then it need not be decoded to be routed."""
        by_key = all(step.keeps(self.record.identity[0]) for step in self.steps)
        return self.partitions > 0 and self.partitions % shards == 0 and by_key and not self.broadcast

    def decoded(self) -> pa.Schema:
        """The columns of the records ahead of the steps."""
        schema = self.record.arrow_schema()
        if self.clock == "event":
            return schema
        at, stamp = schema.get_field_index(self.time), pa.field(self.time, pa.int64())
        return schema.append(stamp) if at < 0 else schema.set(at, stamp)

    def columns(self) -> pa.Schema:
        """The columns of the records after the steps."""
        return after(self.steps, self.decoded())
