"""One input of a job: topics, their formats, the time column, and how far the clocks of their writers are trusted."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal

import pyarrow as pa

from engine.spec.decoder import Decoder
from engine.spec.most_keys import MostKeys
from engine.spec.record import Record
from engine.spec.steps import Step, after
from engine.spec.time_bounds import TimeBounds
from engine.watermarks import AscendingTimestamps, BoundedOutOfOrderness, WatermarkStrategy

TimeDomain = Literal["event", "ingestion", "processing"]
"""The kind of time that a job works on: event time, arrival at Kafka, or the shard's clock when it takes records in."""


@dataclass(frozen=True)
class Source:
    """One input of a job: topics of one record type, and how far the clocks of their writers are trusted.

    Args:
        formats: The decoder of each topic.
        record: The type of the records of all topics.
        time: The column of the time that the job works on.
        watermark: The watermark strategy.
        bounds: Which event times are accepted.
        clock: The kind of time that the job works on. Event time is in the records; for ingestion and processing time
            the column is filled when records are read, see `timed`.
        columnar: Whether the topics have few large messages instead of many small ones.
        partitions: Number of partitions of the topics if they are partitioned by the hash of the key; otherwise 0.
        steps: Steps that are applied to each record before it is routed to its shard.
        holds: Whether the watermark of the job waits for this input. False for a topic that the job itself writes, as
            the job and the topic would wait for each other.
        broadcast: Whether all shards get all records: for a slow stream that concerns all keys.
        most_keys: How many keys may come from here; ``None``: any number. It holds where messages are routed undecoded.
        reports: Whether refused messages become dead letters. Of several jobs that read a topic, only one reports.
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
    most_keys: MostKeys | None = None
    clock: TimeDomain = "event"

    def timed(self, clock: TimeDomain, column: str) -> Source:
        """This source with another kind of time in the given column, which is added if it does not exist.

        In ingestion time the watermark of a partition is its greatest arrival time, heartbeats included, since Kafka
        stamps the records of a partition in order. In processing time it is the shard's clock.
        """
        if clock == "event":
            return replace(self, clock=clock, time=column)
        strategy = AscendingTimestamps(self.watermark.idle_after, self.watermark.expected)
        return replace(self, clock=clock, time=column, watermark=strategy)

    def partitioned_by(self, column: str) -> bool:
        """Whether all records with one value of a column are in one partition of each topic."""
        by_column = self.record.identity[:1] == (column,) and all(step.keeps(column) for step in self.steps)
        return self.partitions > 0 and by_column and not self.broadcast

    def direct(self, shards: int) -> bool:
        """Whether the partition of a message determines the shard of its records, so that it is routed undecoded."""
        return any(map(self.partitioned_by, self.record.identity[:1])) and self.partitions % shards == 0

    def decoded(self) -> pa.Schema:
        """The columns of the records before the steps."""
        schema = self.record.arrow_schema()
        if self.clock == "event":
            return schema
        at, stamp = schema.get_field_index(self.time), pa.field(self.time, pa.int64())
        return schema.append(stamp) if at < 0 else schema.set(at, stamp)

    def columns(self) -> pa.Schema:
        """The columns of the records after the steps."""
        return after(self.steps, self.decoded())
