"""Map side: Kafka messages to checked columns, split into one blob a shard, with a marker of each partition's clock.

Markers and dead letters travel in the same stream as the records, so that event time is decided by the data alone.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import astuple, dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa

from engine.deadletters import DeadLetter
from engine.job import Job
from engine.partitioning import slots
from engine.sources import Messages
from engine.watermarks import Marker

DATA, MARKERS, DEAD = "data", "markers", "dead"


@dataclass(frozen=True)
class Blob:
    """One value on its way from the map side to a shard."""

    shard: int
    kind: str
    value: bytes


def run(job: Job, shards: int, tables: Iterable[pa.Table]) -> Iterator[Blob]:
    """Decodes and splits.

    Args:
        job: Its source and key.
        shards: Number of shards.
        tables: Kafka rows with the columns value, topic, partition, offset and arrived (epoch ms).
    """
    records: list[pa.Table] = []
    markers: list[Marker] = []
    dead: dict[int, list[DeadLetter]] = defaultdict(list)
    for table in tables:
        for messages in runs(table):
            good, marker, bad = job.source.read(messages, job.name)
            markers.append(marker)
            if good.num_rows:
                records.append(good)
            dead[messages.partition % shards] += bad
    if records:
        yield from split(pa.concat_tables(records), job.key[0], shards)
    if markers:
        told = json.dumps([astuple(m) for m in markers]).encode()
        yield from (Blob(shard, MARKERS, told) for shard in range(shards))
    for shard, letters in dead.items():
        if letters:
            yield Blob(shard, DEAD, b"\n".join(letter.to_json() for letter in letters))


def runs(table: pa.Table) -> Iterator[Messages]:
    """Cuts Kafka rows where topic or partition change."""
    if not table.num_rows:
        return
    table = table.combine_chunks()
    partition = table.column("partition").to_numpy()
    topic = table.column("topic").combine_chunks().dictionary_encode()
    codes = (topic.chunk(0) if isinstance(topic, pa.ChunkedArray) else topic).indices.to_numpy()
    cuts = np.flatnonzero((np.diff(partition) != 0) | (np.diff(codes) != 0)) + 1
    for start, end in pairwise([0, *cuts.tolist(), table.num_rows]):
        part = table.slice(start, end - start).combine_chunks()
        yield Messages(
            part.column("topic")[0].as_py(),
            part.column("partition")[0].as_py(),
            part.column("value").chunk(0),
            part.column("offset").to_numpy(),
            part.column("arrived").to_numpy(),
        )


def split(records: pa.Table, key: str, shards: int) -> Iterator[Blob]:
    """One Arrow stream a shard that has records."""
    records = records.unify_dictionaries()
    where = slots(records.column(key), shards)
    for shard in range(shards):
        mine = where == shard
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
