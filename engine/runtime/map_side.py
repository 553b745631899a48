"""Map side: turns Kafka messages into checked columns, split into one blob for each shard, with markers.

A marker reports the clock of a partition. Markers and dead letters travel in the same stream as the records, so that
event time is decided by the data alone. A columnar topic that is partitioned by key needs no map side: its messages go
to their shard as they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import astuple, dataclass

import numpy as np
import orjson
import pyarrow as pa

from engine.columns.partitioning import slots
from engine.runtime.intake import Intake, read
from engine.spec.inputs import INPUT
from engine.spec.job import Job
from engine.spec.log_place import place
from engine.watermarks import Marker

DATA, MARKERS, DEAD, COST = "data", "markers", "dead", "cost"


@dataclass(frozen=True)
class Blob:
    """One value that the map side sends to a shard."""

    shard: int
    kind: str
    value: bytes


def run(job: Job, shards: int, tables: Iterable[pa.Table]) -> Iterator[Blob]:
    """Decodes Kafka rows and splits them by shard.

    Args:
        job: The job.
        shards: Number of shards.
        tables: Kafka rows, see `engine.runtime.intake.KAFKA`.
    """
    intake = read(job, tables)
    if any(place(table.schema.metadata) for table in intake.records):  # each table is of one partition, and stays so
        for table in intake.records:
            yield from _split(table, job, shards)
    elif intake.records:
        yield from _split(pa.concat_tables(intake.records), job, shards)
    if intake.markers:
        markers = orjson.dumps([astuple(m) for m in intake.markers])
        yield from (Blob(shard, MARKERS, markers) for shard in range(shards))
    if intake.dead:
        yield Blob(intake.markers[0].partition % shards, DEAD, b"\n".join(intake.dead))


def _split(records: pa.Table, job: Job, shards: int) -> Iterator[Blob]:
    """One Arrow stream for each shard that has records."""
    records = records.unify_dictionaries()
    everywhere = np.zeros(records.num_rows, bool)
    if any(source.broadcast for source in job.inputs):
        broadcast = np.array([source.broadcast for source in job.inputs])
        everywhere = broadcast[records.column(INPUT).to_numpy()]
    where = slots(records.column(job.key[0]), shards)
    for shard in range(shards):
        mine = (where == shard) | everywhere
        if mine.all():
            part = records
        elif mine.any():
            part = records.filter(pa.array(mine))
        else:
            continue
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, part.schema) as writer:
            writer.write_table(part.combine_chunks())
        yield Blob(shard, DATA, bytes(sink.getvalue()))


def joined(blobs: Iterable[tuple[str, bytes]]) -> Intake:
    """The input of a shard, from the kind and value of each blob of the map tasks."""
    intake = Intake()
    for kind, value in blobs:
        if kind == DATA:
            intake.records.append(pa.ipc.open_stream(value).read_all())
        elif kind == MARKERS:
            intake.markers += [Marker(*row) for row in orjson.loads(value)]
        elif kind == COST:
            intake.map_ms = max(intake.map_ms, float(value))
        else:
            intake.dead += value.split(b"\n")
    return intake
