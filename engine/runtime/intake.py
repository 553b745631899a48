"""The decoded and checked input of a micro-batch: good records, markers of the partitions' clocks, dead letters."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
import pyarrow as pa

from engine.columns.arrays import Ints
from engine.runtime import reading
from engine.spec.decoder import Messages
from engine.spec.inputs import INPUT, schema
from engine.spec.job import Job
from engine.spec.log_place import COLUMNS
from engine.state.known_keys import KnownKeys
from engine.state.segments import Segments
from engine.watermarks import Marker

KAFKA = pa.schema(
    [
        ("value", pa.binary()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("arrived", pa.int64()),
    ]
)
"""Columns of Kafka rows; ``arrived`` is the timestamp of the message, epoch milliseconds."""


@dataclass
class Intake:
    """The input of a shard or of a map task.

    Attributes:
        records: Good records, with the columns of `engine.spec.inputs.schema`. Where the log decides what is too late,
            they also have their place in it (`engine.spec.log_place`), and each table is of one partition.
        markers: One marker for each run of messages of one partition.
        dead: The dead letters, as JSON.
        map_ms: Wall time of the slowest map task that has sent anything to this shard, milliseconds.
    """

    records: list[pa.Table] = field(default_factory=list)
    markers: list[Marker] = field(default_factory=list)
    dead: list[bytes] = field(default_factory=list)
    map_ms: float = 0.0


def read(job: Job, tables: Iterable[pa.Table], shard: int = 0, state: Segments | None = None) -> Intake:
    """Decodes and checks `KAFKA` rows.

    Args:
        job: The job.
        tables: The rows.
        shard: The shard that reads them. Bad messages of broadcast topics are reported by the first one only.
        state: The state of the shard, which gets the keys that it has met if a source bounds their number.
    """
    keys = KnownKeys(state) if state is not None and any(source.most_keys for source in job.inputs) else None
    intake, columns, by_log = Intake(), schema(job.inputs), [job.decides_in_log(source) for source in job.inputs]
    if any(by_log):
        columns = pa.schema([*columns, *COLUMNS])
    for table in tables:
        for messages in runs(table):
            readers = [(i, source) for i, source in enumerate(job.inputs) if messages.topic in source.formats]
            for nth, (number, source) in enumerate(readers):
                good, marker, bad = reading.read(source, messages, job.name, by_log[number], keys)
                intake.markers.append(marker)
                if good.num_rows:
                    intake.records.append(tagged(good, number, columns))
                # if several inputs read a topic, only the first one reports bad messages
                if nth == 0 and (shard == 0 or not source.broadcast):
                    intake.dead += [letter.to_json() for letter in bad]
    if keys:
        keys.save()
    return intake


def runs(table: pa.Table) -> Iterator[Messages]:
    """Splits Kafka rows into runs of messages of one topic and partition."""
    if not table.num_rows:
        return
    table = table.combine_chunks()
    for start, end in pairwise([*begins(table).tolist(), table.num_rows]):
        part = table.slice(start, end - start).combine_chunks()
        yield Messages(
            part.column("topic")[0].as_py(),
            part.column("partition")[0].as_py(),
            part.column("value").chunk(0),
            part.column("offset").to_numpy(),
            part.column("arrived").to_numpy(),
        )


def begins(table: pa.Table) -> Ints:
    """The first row of each run of messages of one topic and partition; the table has rows."""
    partition = table.column("partition").to_numpy()
    topic = table.column("topic").combine_chunks().dictionary_encode()
    codes = (topic.chunk(0) if isinstance(topic, pa.ChunkedArray) else topic).indices.to_numpy()
    return np.flatnonzero(np.append(True, (np.diff(partition) != 0) | (np.diff(codes) != 0)))


def tagged(records: pa.Table, number: int, columns: pa.Schema) -> pa.Table:
    """Records of one input with all columns of the job (`schema`); columns of other inputs are null."""
    if INPUT not in columns.names:
        return records
    n, arrays, metadata = records.num_rows, [], records.schema.metadata
    for column in columns:
        if column.name == INPUT:
            arrays.append(pa.array(np.full(n, number, np.int8)))
        elif column.name in records.schema.names:
            arrays.append(records.column(column.name).cast(column.type))
        else:
            arrays.append(pa.nulls(n, column.type))
    return pa.Table.from_arrays(arrays, schema=columns.with_metadata(metadata))
