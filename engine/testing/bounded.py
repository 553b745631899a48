"""Runs a job over input that has ended, with records in event-time order, followed by the end of time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import polars as pl

from engine.columns.partitioning import slots
from engine.spec.duration import END_OF_TIME, NEVER
from engine.spec.inputs import INPUT
from engine.spec.job import Job
from engine.spec.operator import Progress
from engine.state.segments import DictSegments, ShardState
from engine.testing import frames
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
    by_topic = records if isinstance(records, Mapping) else {job.topics[0]: records}
    frame = frames.frame(job.inputs, {topic: list(some) for topic, some in by_topic.items()})
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
