"""One shard of a job: from the input of a micro-batch and the stored state to messages and statistics.

The order within a micro-batch: markers advance the watermark; records are processed with the watermarks before and
after; results are encoded; the state is saved. This module does not know Spark and reads no clock.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import orjson
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from engine.columns.dictionaries import compact, whole
from engine.columns.partitioning import slots
from engine.formats import columnar
from engine.formats.json_lines import to_json_lines
from engine.runtime.beyond_letters import beyond_letters, refused_letters
from engine.runtime.input_clocks import InputClocks
from engine.runtime.intake import Intake
from engine.runtime.messages import Message, Outgoing
from engine.spec import inputs
from engine.spec.duration import NEVER
from engine.spec.errors import NewnormalError
from engine.spec.expressions import values
from engine.spec.grid import ANYWHERE
from engine.spec.inputs import INPUT
from engine.spec.job import Job
from engine.spec.log_place import Times
from engine.spec.operator import SIDE, Progress
from engine.spec.output import Output
from engine.spec.record import Record
from engine.state.segments import Segments, ShardState
from engine.vectorized.beyond import set_apart
from engine.vectorized.build import build

ROWS_A_MESSAGE = 16_384
SAMPLE, HOTTEST = 4096, 3
STATS = "#stats"
"""Topic name of the row in which a shard reports its `Stats`; it goes to the driver, not to Kafka."""


@dataclass(frozen=True)
class Stats:
    """What one shard did in one micro-batch, and the size of its state afterwards.

    Attributes:
        shard: Number of the shard.
        keys: Number of keys in the state, see `engine.vectorized.processor.StateCounts`.
        open: Number of open windows.
        timers: Number of timers that are set.
        hot: The most frequent keys of a sample of the records, as text, with their shares of the sample.
        map_ms: Wall time of the map side, with reading from Kafka; set by the caller of the shard.
        read_ms: Wall time of decoding in the shard; set by the caller.
        operator_ms: Wall time of the operator, with encoding and state; set by the caller.
    """

    records_in: int
    records_out: int
    late: int
    dead: int
    watermark: int
    state_bytes: int
    shard: int = 0
    keys: int | None = None
    open: int | None = None
    timers: int | None = None
    hot: Sequence[tuple[str, float]] = ()
    map_ms: float = 0.0
    read_ms: float = 0.0
    operator_ms: float = 0.0

    def message(self) -> Outgoing:
        """The row that reports these statistics to the driver."""
        return Outgoing.of(STATS, self.shard, [orjson.dumps(self)])

    @classmethod
    def of(cls, message: Message) -> Stats:
        """Inverse of `message`."""
        return cls(**orjson.loads(message.value or b""))

    @classmethod
    def of_all(cls, portions: Sequence[Stats]) -> Stats:
        """The statistics of a micro-batch that was processed in portions; the most frequent keys are the first's.

        >>> one, other = Stats(5, 1, 0, 0, 70, 900), Stats(3, 2, 1, 0, 80, 950)
        >>> Stats.of_all([one, other])
        Stats(records_in=8, records_out=3, late=1, dead=0, watermark=80, state_bytes=950, shard=0, keys=None, ...
        """
        added = ("records_in", "records_out", "late", "dead", "read_ms", "operator_ms")
        sums = {name: sum(getattr(portion, name) for portion in portions) for name in added}
        slowest = max(portion.map_ms for portion in portions)
        return replace(portions[-1], hot=portions[0].hot, map_ms=slowest, **sums)


class ShardOperator:
    """The logic of one job in one shard."""

    def __init__(self, job: Job, shard: int, shards: int) -> None:
        self.job, self.shard, self.shards = job, shard, shards
        self.processor, self.grid = build(job.processor), job.processor.result_grid(ANYWHERE)

    def run(self, intake: Intake, state: Segments) -> Iterator[Outgoing]:
        """Processes one micro-batch."""
        kept = ShardState(state)
        clocks = self._clocks(kept.notes.get("watermark", {}))
        before, clock = clocks.watermark, clocks.clock
        in_log = self._in_log(intake.records, clocks)
        now = clocks.advance(intake.markers)
        batch = self._batch(intake.records, clock)
        results = self.processor.process(batch, kept, Progress(before, now, clock, clocks.clock, in_log))
        kept.notes["watermark"] = clocks.snapshot()
        written, beyond = set_apart(results.records)
        dead = [*intake.dead, *refused_letters(self.job, results.refused, clocks.clock)]
        dead += beyond_letters(self.job, [*results.beyond, beyond], clocks.clock)
        passed = self.grid.last(now)
        moved = passed > self.grid.last(before)
        for output, records in routed(self.job, written, results.aside):
            yield from encode(output, records, self.shard, self.shards, passed, moved)
        too_late = self._late(results.late)
        late = too_late.height if too_late is not None else 0
        if late and self.job.late and too_late is not None:
            yield from encode(self.job.late, too_late, self.shard, self.shards, now, moved=False)
        if dead:
            yield Outgoing.of(self.job.dead.topic, self.shard % self.job.dead.partitions, dead)
        counts = (batch.height, written.height, late, len(dead), now, kept.save())
        held = results.held
        yield Stats(*counts, self.shard, held.keys, held.open, held.timers, self._hot(batch)).message()

    def _clocks(self, snapshot: dict[str, Any]) -> InputClocks:
        if self.job.direct(self.shards):
            return InputClocks.of_shard(self.job.inputs, self.shard, self.shards, snapshot)
        return InputClocks(self.job.inputs, snapshot)

    def _late(self, late: pl.DataFrame | None) -> pl.DataFrame | None:
        """The late records that this shard reports.

        Those of broadcast input, which all shards get, are the first shard's.
        """
        broadcast = [number for number, source in enumerate(self.job.inputs) if source.broadcast]
        if late is None or not broadcast or self.shard == 0 or INPUT not in late.columns:
            return late
        return late.filter(~pl.col(INPUT).is_in(broadcast))

    def _hot(self, batch: pl.DataFrame) -> list[tuple[str, float]]:
        """The most frequent keys in a sample of evenly spaced records."""
        if not batch.height or not self.job.key:
            return []
        sample = batch.select(self.job.key).gather_every(max(1, batch.height // SAMPLE))
        top = sample.group_by(self.job.key).len("__n").top_k(HOTTEST, by="__n").rows()
        return [(", ".join(map(str, key)), n / sample.height) for *key, n in top]

    def _in_log(self, tables: list[pa.Table], clocks: InputClocks) -> Times | None:
        """The watermarks that `Progress.in_log` describes."""
        if not tables or not any(map(self.job.decides_in_log, self.job.inputs)):
            return None
        return np.concatenate([clocks.in_log(table) for table in tables])

    def _batch(self, tables: list[pa.Table], clock: int = NEVER) -> pl.DataFrame:
        schema = inputs.schema(self.job.inputs)
        tables = [table.select(schema.names) for table in tables]
        table = pa.concat_tables(tables).unify_dictionaries() if tables else schema.empty_table()
        frame = pl.from_arrow(table)
        assert isinstance(frame, pl.DataFrame)
        if self.job.clock == "processing":
            return frame.with_columns(pl.col(self.job.time).clip(lower_bound=clock))
        return frame


def routed(
    job: Job, results: pl.DataFrame, beside: Mapping[str, pl.DataFrame] | None = None
) -> Iterator[tuple[Output, pl.DataFrame]]:
    """Splits the results by output; the main output comes first.

    Args:
        job: The job.
        results: Results of all outputs; those of a side output have its name in the column `SIDE`.
        beside: Further results of side outputs, by name.

    Raises:
        NewnormalError: ``SIDE_UNKNOWN`` if a user's own logic emits to a side output that the job does not have.
    """
    if SIDE not in results.columns:
        main, aside = results, results.clear()
    else:
        to = pl.col(SIDE)
        main, aside = results.filter(to.is_null()).drop(SIDE), results.filter(to.is_not_null())
    names, beside = [side.name for side in job.side], beside or {}
    emitted = {*beside, *(aside[SIDE].to_list() if aside.height else ())}
    if unknown := sorted(emitted - set(names)):
        accepted = ", ".join(names) or "none: write(..., side={...}) names them"
        raise NewnormalError("SIDE_UNKNOWN", f"{', '.join(unknown)}", f"job {job.name}", accepted, "the job failed")
    yield job.output, main
    for side in job.side:
        parts = [aside.filter(pl.col(SIDE) == side.name).drop(SIDE)] if aside.height else []
        parts += [beside[side.name]] if side.name in beside else []
        parts += [main.filter(values(side.where, main))] if side.where and main.height else []
        filled = [part for part in parts if part.height]
        yield side.output, pl.concat(filled, how="diagonal_relaxed") if filled else pl.DataFrame()


def encode(
    output: Output, records: pl.DataFrame, shard: int, shards: int, watermark: int, moved: bool
) -> Iterator[Outgoing]:
    """Encodes records to messages. A columnar output also gets messages without rows that carry the watermark.

    Args:
        output: The topic and its format.
        records: The records; an empty frame may lack its columns.
        shard: The shard that writes.
        shards: Number of shards. A shard owns the partitions whose number modulo ``shards`` is its own number.
        watermark: The watermark after the micro-batch, or the last instant before it at which results may lie
            (`Operator.result_grid`): all partitions have the same, whichever of them had records since.
        moved: Whether it has advanced; then the shard's partitions without records get a message too.
    """
    own = range(shard, output.partitions, shards)
    rows: dict[int, pl.DataFrame] = {}
    if records.height:
        by = output.partitioned_by
        where = pl.Series("__p", slots(records[by], output.partitions))
        if output.format == "json":
            lines = to_json_lines(records, output.record)
            if output.key and (deleted := _deleted(output, records)).any():
                lines = pl.DataFrame({"line": lines, "deleted": deleted}).select(
                    pl.when(~pl.col("deleted")).then("line")
                )["line"]
            records = pl.DataFrame([_message_keys(output, records).alias("key"), lines.alias("line")])
        parts = records.with_columns(where).partition_by("__p", as_dict=True, include_key=False)
        rows = {int(p): part for (p,), part in parts.items()}
    if output.format == "json":
        for partition, part in rows.items():
            yield Outgoing(output.topic, partition, _binary(part["key"]), _binary(part["line"]))
        return
    for partition in sorted({*rows, *(own if moved else ())}):
        rest = rows.get(partition)
        table = to_table(rest, output.record) if rest is not None else output.record.arrow_schema().empty_table()
        pieces = max(1, math.ceil(table.num_rows / ROWS_A_MESSAGE))
        for i in range(pieces):
            piece = table.slice(i * ROWS_A_MESSAGE, ROWS_A_MESSAGE)
            writer_watermark = watermark if i == pieces - 1 else NEVER
            yield Outgoing.of(output.topic, partition, [columnar.encode(piece, writer_watermark)])


def _deleted(output: Output, records: pl.DataFrame) -> pl.Series:
    """Which records delete their key: all columns but those of the key are null."""
    others = [
        pl.col(name).is_null() for name in output.record.model_fields if name in set(records.columns) - {*output.key}
    ]
    return records.select(pl.all_horizontal(others) if others else pl.lit(False)).to_series()


def _message_keys(output: Output, records: pl.DataFrame) -> pl.Series:
    """The keys of JSON messages as text."""
    if not output.key:
        return records[output.partitioned_by].cast(pl.String)
    return records.select(
        pl.struct(pl.col(name).cast(pl.String) for name in output.key).struct.json_encode()
    ).to_series()


def _binary(texts: pl.Series) -> pa.Array:
    return texts.cast(pl.Binary).to_arrow().cast(pa.binary())


def to_table(records: pl.DataFrame, record: type[Record]) -> pa.Table:
    """The columns of the record type, cast to its schema; missing optional columns are null."""
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
    if pa.types.is_null(column.type):
        return pa.chunked_array([pa.nulls(len(column), kind)], kind)
    if pa.types.is_dictionary(kind) and pa.types.is_dictionary(column.type):
        return compact(column, kind)
    if pa.types.is_dictionary(kind):
        return column.cast(pa.string()).dictionary_encode()
    if pa.types.is_map(kind):
        return pa.chunked_array([_map(whole(column), kind)], kind)
    return column.cast(kind)


def _map(entries: pa.Array, kind: pa.MapType) -> pa.Array:
    """A list of structs ``key`` and ``value`` as a map."""
    lists = entries.cast(pa.list_(entries.type.value_type))
    keys, values = (pc.struct_field(lists.values, i) for i in (0, 1))
    offsets = pc.if_else(lists.is_valid(), lists.offsets[:-1], None) if lists.null_count else lists.offsets[:-1]
    offsets = pa.concat_arrays([offsets, lists.offsets[-1:]])
    return pa.MapArray.from_arrays(offsets, keys.cast(kind.key_type), values.cast(kind.item_type))
