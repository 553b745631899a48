"""From Kafka messages to checked columns. A decoder knows one format; the checks here hold for all of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from engine.columns.partitioning import slots
from engine.formats import columnar
from engine.formats.dead_letters import DeadLetter, dead_letter
from engine.formats.heartbeat import HEARTBEAT
from engine.spec.duration import NEVER, duration_ms
from engine.spec.errors import NewnormalError
from engine.spec.record import Record
from engine.spec.steps import Step, apply
from engine.spec.time_bounds import TimeBounds
from engine.watermarks import BoundedOutOfOrderness, Marker, Ordered, WatermarkStrategy

Clock = Literal["event", "ingestion", "processing"]
"""Which time a job works on: the records' own; their arrival at Kafka; or the shard's clock when it takes them in."""

LARGEST = 1e150
"""Greatest absolute value of a number: its square must still be one."""

_PARTITIONER = "CRC-32 of the key modulo their number"
ROW = "__row"
"""Column of decoded records: index of the message each came from."""


@dataclass(frozen=True)
class Messages:
    """Some consecutive messages of one topic partition; arrays of one length."""

    topic: str
    partition: int
    values: pa.Array
    offsets: npt.NDArray[np.int64]
    arrived: npt.NDArray[np.int64]

    def where(self, keep: npt.NDArray[np.bool_]) -> Messages:
        """Some of them."""
        values = self.values.filter(pa.array(keep))
        return Messages(self.topic, self.partition, values, self.offsets[keep], self.arrived[keep])


@dataclass
class Decoded:
    """What a decoder makes of messages.

    Attributes:
        records: Columns of the record type and `ROW`.
        refused: Index of the message, code and reason of each that could not be used.
        vouched: Greatest watermark its writer put into the messages; ``None`` without any.
    """

    records: pa.Table
    refused: list[tuple[int, str, str]] = field(default_factory=list)
    vouched: int | None = None


class Decoder(ABC):
    """One input format."""

    @abstractmethod
    def decode(self, messages: Messages) -> Decoded:
        """Columns of the usable messages; never raises because of what a message holds."""


@dataclass(frozen=True)
class ColumnarDecoder(Decoder):
    """The columnar log of one record type."""

    record: type[Record]

    def decode(self, messages: Messages) -> Decoded:
        schema = self.record.arrow_schema()
        tables, refused, told = [], [], []
        for row, value in enumerate(messages.values):
            try:
                table, watermark = columnar.decode(value.as_buffer() if value.is_valid else b"", schema)
            except NewnormalError as error:
                refused.append((row, error.code, error.what))
                continue
            told += [watermark] if watermark is not None else []
            if table.num_rows:
                tables.append(table.append_column(ROW, pa.array(np.full(table.num_rows, row, np.int32))))
        empty = schema.append(pa.field(ROW, pa.int32())).empty_table()
        return Decoded(pa.concat_tables(tables) if tables else empty, refused, max(told, default=None))


@dataclass(frozen=True)
class Source:
    """What a job reads: topics of one record type, and how far their clocks are trusted.

    Args:
        formats: The decoder of each topic.
        record: The type of all of them.
        time: The column of the time that the job works on.
        clock: Whose time that is; but for event time the column is set when records are read, see `timed`.
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
    clock: Clock = "event"

    def timed(self, clock: Clock, column: str) -> Source:
        """The same on another time, in a column that the records have or get.

        By ingestion time the watermark of a partition is its greatest arrival time, heartbeats included: Kafka stamps
        the records of a partition in order. By processing time it is the shard's clock.
        """
        if clock == "event":
            return replace(self, clock=clock, time=column)
        strategy = Ordered(self.watermark.idle_after, self.watermark.expected)
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
        schema = self.decoded()
        return apply(self.steps, schema.empty_table()).schema if self.steps else schema

    def read(self, messages: Messages, job: str) -> tuple[pa.Table, Marker, list[DeadLetter]]:
        """Decodes and checks messages of one partition.

        Returns:
            The good records after the steps, what they tell of the partition's clock, and the dead letters.
        """
        first, last, offset = int(messages.arrived.min()), int(messages.arrived.max()), int(messages.offsets[0])
        beats = pc.fill_null(pc.equal(messages.values, HEARTBEAT), False).to_numpy(zero_copy_only=False)
        messages = messages.where(~beats) if beats.any() else messages
        spoke = int(messages.arrived.max()) if len(messages.values) else NEVER
        decoded = self.formats[messages.topic].decode(messages)
        records, refused = self._check(decoded.records, messages)
        letters = [*decoded.refused, *refused] if self.reports else []
        dead = [self._dead(job, messages, *letter) for letter in letters]
        if self.clock != "event":
            marker = Marker(messages.topic, messages.partition, last, None, first, last, last, offset)
            return apply(self.steps, self._stamped(records, messages)), marker, dead
        newest = pc.max(records.column(self.time)).as_py() if records.num_rows else NEVER
        limit = last + duration_ms(self.bounds.max_ahead)
        vouched = self.watermark.vouches(records, decoded.vouched)
        vouched = None if vouched is None else min(vouched, limit)
        observed = self.watermark.observes(records.column(self.time).to_numpy())
        marker = Marker(messages.topic, messages.partition, newest, vouched, first, last, spoke, offset, observed)
        return apply(self.steps, records.drop_columns([ROW])), marker, dead

    def _stamped(self, records: pa.Table, messages: Messages) -> pa.Table:
        """The records with their arrival as their time."""
        arrived = pa.array(messages.arrived[records.column(ROW).to_numpy()])
        columns = {name: records.column(name) for name in self.record.arrow_schema().names} | {self.time: arrived}
        return pa.table(columns, schema=self.decoded())

    def _check(self, records: pa.Table, messages: Messages) -> tuple[pa.Table, list[tuple[int, str, str]]]:
        rows = records.column(ROW).to_numpy()
        own = self.clock == "event"
        times = records.column(self.time).to_numpy() if own else messages.arrived[rows]
        wrong = own & (self.bounds.early(times) | self.bounds.ahead(times, messages.arrived[rows]))
        broken = np.zeros(len(rows), bool)
        for name, column in zip(records.schema.names, records.columns, strict=True):
            if pa.types.is_floating(column.type):
                values = column.to_numpy()
                broken |= ~(np.abs(values) <= LARGEST) & column.is_valid().to_numpy()
            elif name in self.record.identity and pa.types.is_dictionary(column.type):
                broken |= pc.equal(column, "").to_numpy()
        astray = np.zeros(len(rows), bool)
        if self.partitions:
            astray = slots(records.column(self.record.identity[0]), self.partitions) != messages.partition
        bad = wrong | broken | astray
        if not bad.any():
            return records, []
        refused: dict[tuple[int, str], str] = {}
        for index in np.flatnonzero(bad):
            row = int(rows[index])
            why = self._why(int(times[index]), int(messages.arrived[row]), bool(astray[index]))
            refused.setdefault((row, why[0]), why[1])
        return records.filter(pa.array(~bad)), [(row, code, why) for (row, code), why in refused.items()]

    def _why(self, time: int, arrived: int, astray: bool) -> tuple[str, str]:
        """Code and reason of a record that is refused."""
        wrong_time = self.bounds.refusal(time, arrived, self.time) if self.clock == "event" else None
        if wrong_time:
            return wrong_time
        if astray:
            return "KEY_ASTRAY", f"its key belongs to another of the {self.partitions} partitions: {_PARTITIONER}"
        return "VALUE_INVALID", f"NaN, beyond ±{LARGEST:g}, or an empty key; accepted: finite numbers"

    def _dead(self, job: str, messages: Messages, row: int, code: str, reason: str) -> DeadLetter:
        time, offset = int(messages.arrived[row]), int(messages.offsets[row])
        raw = messages.values[row].as_py()
        return dead_letter(
            job, code, reason, raw, time=time, topic=messages.topic, partition=messages.partition, offset=offset
        )
