"""A job over input that has ended: the same processors, records in event-time order, then the end of time."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import polars as pl
import pyarrow as pa

from engine.job import Job, Progress
from engine.partitioning import slots
from engine.state import DictSegments, ShardState
from engine.time import END_OF_TIME, NEVER


def bounded(
    job: Job, records: Iterable[dict[str, Any]], shards: int = 1, pieces: int = 1
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Runs a job over all records, in some pieces; the watermark follows them, and ends at the end of time.

    Returns:
        Results, and records that came too late: none, as they come in order.
    """
    table = pa.Table.from_pylist(list(records), schema=job.source.record.arrow_schema())
    frame = pl.DataFrame(table).sort(job.source.time, maintain_order=True)
    shard = slots(frame[job.key[0]], shards)
    size = max(1, -(-frame.height // pieces))
    rows: list[dict[str, Any]] = []
    late: list[dict[str, Any]] = []
    for number in range(shards):
        state, processor, before = DictSegments(), job.processor.build(), NEVER
        mine = frame.filter(pl.Series(shard == number))
        cuts = [*range(0, mine.height, size), mine.height]
        for cut, following in zip(cuts, [*cuts[1:], None], strict=True):
            piece = mine[cut:following] if following is not None else mine.clear()
            now = END_OF_TIME if following is None else piece[job.source.time].max()
            kept = ShardState(state)
            assert isinstance(now, int)
            results = processor.process(piece, kept, Progress(before, now))
            kept.save()
            rows += results.records.to_dicts()
            late += results.late.to_dicts() if results.late is not None else []
            before = now
    return rows, late
