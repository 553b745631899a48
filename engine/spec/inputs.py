"""Several inputs of one job: which record came from which, and one watermark over the partitions of all of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from engine.spec.duration import NEVER
from engine.spec.errors import NewnormalError
from engine.spec.source import Source
from engine.spec.steps import apply, row_by_row
from engine.watermarks import Marker, WatermarkTracker

INPUT = "__input"
"""Column of the records of a job with several inputs: the number of the input that each came from."""


def checked(inputs: Sequence[Source]) -> None:
    """Refuses inputs that one job cannot read together.

    Raises:
        NewnormalError: ``INPUTS_CLASH`` if they tell time differently or in columns of different names, or a column
            has one type here and another one there.
    """
    if len({source.clock for source in inputs}) > 1:
        what = "time is " + ", ".join(source.clock for source in inputs) + " time"
        raise NewnormalError("INPUTS_CLASH", what, "inputs of a job", "one of them for all: merge(...).timed(...)")
    if len({source.time for source in inputs}) > 1:
        what = "event time is in columns " + ", ".join(source.time for source in inputs)
        raise NewnormalError("INPUTS_CLASH", what, "inputs of a job", "one name: select(time=...)")
    if len(inputs) > 1:
        schema(inputs)


def schema(inputs: Sequence[Source]) -> pa.Schema:
    """The columns of all inputs; with several, each may be null, and `INPUT` is added."""
    if len(inputs) == 1:
        return inputs[0].columns()
    fields: dict[str, pa.Field] = {}
    for source in inputs:
        for field in source.columns():
            known = fields.get(field.name)
            kind = field.type if known is None else _common(field, known.type)
            fields[field.name] = pa.field(field.name, kind)
    return pa.schema([*fields.values(), pa.field(INPUT, pa.int8())])


def _common(field: pa.Field, known: pa.DataType) -> pa.DataType:
    if field.type == known:
        return known
    if _text(field.type) and _text(known):
        return pa.string()
    what = f"column {field.name!r} is {known} in one input and {field.type} in another"
    raise NewnormalError("INPUTS_CLASH", what, "inputs of a job", "one type, or names of their own: select(...)")


def _text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or (pa.types.is_dictionary(kind) and pa.types.is_string(kind.value_type)))


def tagged(records: pa.Table, number: int, columns: pa.Schema) -> pa.Table:
    """Records of one input as records of the job: columns of `schema`, those of other inputs null."""
    if INPUT not in columns.names:
        return records
    n, arrays = records.num_rows, []
    for field in columns:
        if field.name == INPUT:
            arrays.append(pa.array(np.full(n, number, np.int8)))
        elif field.name in records.schema.names:
            arrays.append(records.column(field.name).cast(field.type))
        else:
            arrays.append(pa.nulls(n, field.type))
    return pa.Table.from_arrays(arrays, schema=columns)


def frame(inputs: Sequence[Source], records: Mapping[str, Sequence[dict[str, Any]]]) -> pl.DataFrame:
    """Records of the job, with the columns of `schema`, from decoded ones by topic."""
    columns, tables = schema(inputs), []
    for number, source in enumerate(inputs):
        for topic in source.formats:
            table = pa.Table.from_pylist(list(records.get(topic, ())), schema=source.decoded())
            tables.append(tagged(apply(source.steps, table), number, columns))
    return pl.DataFrame(pa.concat_tables(tables).unify_dictionaries())


def rows(inputs: Sequence[Source], topic: str, record: dict[str, Any], arrived: int = NEVER) -> list[dict[str, Any]]:
    """What a decoded record of a topic is to the job, for references: after the steps, with the columns of `schema`."""
    found = []
    for number, source in enumerate(inputs):
        if topic in source.formats:
            stamp = {} if source.clock == "event" else {source.time: arrived}
            made = row_by_row(source.steps, [record | stamp], source.decoded())
            found += [_row(inputs, number, row) for row in made]
    return found


def _row(inputs: Sequence[Source], number: int, row: dict[str, Any]) -> dict[str, Any]:
    return row if len(inputs) == 1 else dict.fromkeys(schema(inputs).names) | row | {INPUT: number}


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
        awake = [tracker.watermark for tracker in holding if not tracker.silent]
        now = min(awake) if awake else max(tracker.watermark for tracker in holding)
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
