"""Runs a job over input that has ended, with records in event-time order, followed by the end of time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from engine.columns.partitioning import slots
from engine.runtime.intake import tagged
from engine.spec.duration import END_OF_TIME, NEVER
from engine.spec.inputs import INPUT, schema
from engine.spec.job import Job
from engine.spec.operator import Progress
from engine.spec.source import Source
from engine.spec.steps import apply
from engine.state.segments import DictSegments, ShardState
from engine.vectorized.beyond import set_apart
from engine.vectorized.build import build

Row = dict[str, Any]


def bounded(
    job: Job, records: Iterable[Row] | Mapping[str, Iterable[Row]], shards: int = 1, pieces: int = 1
) -> tuple[list[Row], list[Row]]:
    """Runs a job over all records, in several micro-batches.

    The watermark follows the records of each shard, then goes to the last record of all, and then to the end of time.

    Args:
        job: The job.
        records: The records of its first topic, or a mapping by topic.
        shards: Number of shards.
        pieces: Approximate number of micro-batches for each shard.

    Returns:
        Results, and late records, of which there are none, since records come in order.
    """
    frame = _frame(job.inputs, records if isinstance(records, Mapping) else {job.topics[0]: records})
    time = job.time
    frame = frame.sort(time, maintain_order=True)
    latest = frame[time].max() if frame.height else NEVER
    shard = slots(frame[job.key[0]], shards)
    broadcast = [number for number, source in enumerate(job.inputs) if source.broadcast]
    everywhere = frame[INPUT].is_in(broadcast).to_numpy() if broadcast else np.zeros(frame.height, bool)
    size = max(1, -(-frame.height // pieces))
    rows: list[Row] = []
    late: list[Row] = []
    for number in range(shards):
        state, processor, before = DictSegments(), build(job.processor), NEVER
        mine = frame.filter(pl.Series((shard == number) | everywhere))
        steps = [(piece := mine[at : at + size], piece[time].max()) for at in range(0, mine.height, size)]
        for piece, now in [*steps, (mine.clear(), latest), (mine.clear(), END_OF_TIME)]:
            kept = ShardState(state)
            assert isinstance(now, int)
            results = processor.process(piece, kept, Progress(before, now))
            kept.save()
            rows += set_apart(results.records)[0].to_dicts()
            late += results.late.to_dicts() if results.late is not None else []
            before = now
    return rows, late


def _frame(inputs: Sequence[Source], records: Mapping[str, Iterable[Row]]) -> pl.DataFrame:
    """The records of the job, with the columns of `schema`, from decoded records by topic."""
    columns, tables = schema(inputs), []
    for number, source in enumerate(inputs):
        for topic in source.formats:
            table = pa.Table.from_pylist(list(records.get(topic, ())), schema=source.decoded())
            tables.append(tagged(apply(source.steps, table), number, columns))
    return pl.DataFrame(pa.concat_tables(tables).unify_dictionaries())
