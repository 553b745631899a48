"""One shard of a job: takes the blobs of a micro-batch and its state, returns messages to write and what happened.

The order within a batch: markers advance the watermark; records are processed against the watermark before and after;
results are encoded; state is saved. Nothing here knows Spark or a clock.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

import orjson
import polars as pl
import pyarrow as pa

from engine import columnar
from engine.dictionaries import compact
from engine.job import Job, Output, Progress
from engine.operator.mapside import DATA, DEAD, MARKERS
from engine.partitioning import slots
from engine.record import Record
from engine.state import Segments
from engine.time import NEVER
from engine.watermarks import Marker, WatermarkTracker

ROWS_A_MESSAGE = 16_384
STATS = "#stats"
"""Topic name of the row in which a shard reports its `Stats`; it goes to the driver, not to Kafka."""


@dataclass(frozen=True)
class Message:
    """One Kafka message to write."""

    topic: str
    partition: int
    key: bytes
    value: bytes


@dataclass(frozen=True)
class Stats:
    """What one shard did in one micro-batch."""

    records_in: int
    records_out: int
    late: int
    dead: int
    watermark: int
    state_bytes: int


class ShardOperator:
    """The logic of one job in one shard."""

    def __init__(self, job: Job, shard: int, shards: int) -> None:
        self.job, self.shard, self.shards = job, shard, shards
        self.processor = job.processor.build()

    def run(self, blobs: Iterable[tuple[str, bytes]], state: Segments) -> Iterator[Message]:
        """Processes one micro-batch."""
        tables, markers, dead = [], [], []
        for kind, value in blobs:
            if kind == DATA:
                tables.append(pa.ipc.open_stream(value).read_all())
            elif kind == MARKERS:
                markers += [Marker(*row) for row in json.loads(value)]
            elif kind == DEAD:
                dead += value.split(b"\n")
        metered = Metered(state)
        tracker = WatermarkTracker.restore(self.job.source.watermark, json.loads(state.get("watermark") or b"{}"))
        before = tracker.watermark
        now = tracker.advance(markers)
        batch = self._batch(tables)
        results = self.processor.process(batch, metered, Progress(before, now))
        metered.put("watermark", json.dumps(tracker.snapshot()).encode())
        yield from encode(self.job.output, results.records, self.shard, self.shards, now, moved=now > before)
        late = results.late.height if results.late is not None else 0
        if late and self.job.late and results.late is not None:
            yield from encode(self.job.late, results.late, self.shard, self.shards, now, moved=False)
        for letter in dead:
            yield Message(self.job.dead.topic, self.shard % self.job.dead.partitions, b"", letter)
        stats = Stats(batch.height, results.records.height, late, len(dead), now, metered.size())
        yield Message(STATS, self.shard, b"", json.dumps(asdict(stats)).encode())

    def _batch(self, tables: list[pa.Table]) -> pl.DataFrame:
        schema = self.job.source.record.arrow_schema()
        table = pa.concat_tables(tables).unify_dictionaries() if tables else schema.empty_table()
        frame = pl.from_arrow(table)
        assert isinstance(frame, pl.DataFrame)
        return frame


class Metered(Segments):
    """Segments that know how many bytes they hold."""

    def __init__(self, state: Segments) -> None:
        self.state = state
        self.sizes: dict[str, int] = json.loads(state.get("sizes") or b"{}")

    def get(self, name: str) -> bytes | None:
        return self.state.get(name)

    def put(self, name: str, value: bytes) -> None:
        self.sizes[name] = len(value)
        self.state.put(name, value)

    def remove(self, name: str) -> None:
        self.sizes.pop(name, None)
        self.state.remove(name)

    def size(self) -> int:
        """Total bytes; keeps the table of sizes for the next batch."""
        self.state.put("sizes", json.dumps(self.sizes).encode())
        return sum(self.sizes.values())


def encode(
    output: Output, records: pl.DataFrame, shard: int, shards: int, watermark: int, moved: bool
) -> Iterator[Message]:
    """Messages of some records, and heartbeats for the shard's partitions without any.

    Args:
        output: Where to and in which form.
        records: May be without columns when empty.
        shard: The shard that writes.
        shards: Number of shards; partitions ≡ shard are its own.
        watermark: The watermark.
        moved: Whether that is news, to be told in partitions without records too.
    """
    own = range(shard, output.partitions, shards)
    rows: dict[int, pl.DataFrame] = {}
    if records.height:
        where = pl.Series("__p", slots(records[first_key(output.record)], output.partitions))
        parts = records.with_columns(where).partition_by("__p", as_dict=True, include_key=False)
        rows = {int(p): part for (p,), part in parts.items()}
    if output.format == "json":
        for partition, part in rows.items():
            for key, line in to_json_lines(part, output.record):
                yield Message(output.topic, partition, key, line)
        return
    for partition in sorted({*rows, *(own if moved else ())}):
        rest = rows.get(partition)
        table = to_table(rest, output.record) if rest is not None else output.record.arrow_schema().empty_table()
        pieces = max(1, math.ceil(table.num_rows / ROWS_A_MESSAGE))
        for i in range(pieces):
            piece = table.slice(i * ROWS_A_MESSAGE, ROWS_A_MESSAGE)
            vouched = watermark if i == pieces - 1 else NEVER
            yield Message(output.topic, partition, b"", columnar.encode(piece, vouched))


def first_key(record: type[Record]) -> str:
    """The column that decides a record's partition."""
    return record.identity[0]


def to_table(records: pl.DataFrame, record: type[Record]) -> pa.Table:
    """Columns of the record type, cast to its schema; optional ones that are missing are null."""
    schema = record.arrow_schema()
    table = records.select(c for c in schema.names if c in records.columns).to_arrow()
    columns = []
    for field in schema:
        if field.name in table.schema.names:
            columns.append(_cast(table.column(field.name), field.type))
        else:
            columns.append(pa.nulls(table.num_rows, field.type))
    return pa.Table.from_arrays(columns, schema=schema)


def _cast(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    if pa.types.is_dictionary(kind) and pa.types.is_dictionary(column.type):
        return compact(column, kind)
    if pa.types.is_dictionary(kind):
        return column.cast(pa.string()).dictionary_encode()
    return column.cast(kind)


def to_json_lines(records: pl.DataFrame, record: type[Record]) -> Iterator[tuple[bytes, bytes]]:
    """Key and JSON of each record, by alias and without nulls; row by row, for the topics that people read."""
    names = {c: info.alias or c for c, info in record.model_fields.items() if c in records.columns}
    keys = records[first_key(record)].cast(pl.String).to_list()
    for key, row in zip(keys, records.select(list(names)).iter_rows(named=True), strict=True):
        line = {names[c]: _plain(value) for c, value in row.items() if value is not None}
        yield key.encode(), orjson.dumps(line)


def _plain(value: Any) -> Any:
    """A map's entries as an object, an object without its nulls."""
    if isinstance(value, list):
        return {entry["key"]: entry["value"] for entry in value}
    if isinstance(value, dict):
        return {k: v for k, v in value.items() if v is not None}
    return value
