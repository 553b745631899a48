"""Looks into the state of a savepoint: keys, bytes and watermark of each shard, and the state of one series."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import orjson
import polars as pl

from engine.runtime.rescale import WATERMARK, watermark_of
from engine.spec.job import Job
from engine.state.segments import NOTES, Tables, unpack


@dataclass(frozen=True)
class ShardView:
    """The state of one shard.

    Attributes:
        job: Name of the job.
        shard: Number of the shard.
        keys: Number of distinct keys in its tables.
        segments: Number of segments.
        bytes: Size of all segments.
        watermark: Its watermark, epoch milliseconds.
    """

    job: str
    shard: int
    keys: int
    segments: int
    bytes: int
    watermark: int


def shard_view(job: Job, shard: int, segments: Mapping[str, bytes]) -> ShardView:
    """Looks at the state of one shard.

    Args:
        job: The job.
        shard: Number of the shard.
        segments: Its segments by name.
    """
    frames = [table.select(pl.col(job.key).cast(pl.String)) for _, _, table in _keyed(segments, job.key)]
    keys = pl.concat(frames).n_unique() if frames else 0
    size = sum(map(len, segments.values()))
    return ShardView(job.name, shard, keys, len(segments), size, watermark(segments))


def watermark(segments: Mapping[str, bytes]) -> int:
    """The event time that a shard has reached, from its segments by name, epoch milliseconds."""
    notes = orjson.loads(segments.get(NOTES) or b"{}").get("notes", {})
    return watermark_of(notes.get(WATERMARK, {}))


def of_series(job: Job, segments: Mapping[str, bytes], series: Mapping[str, str]) -> Iterator[tuple[str, pl.DataFrame]]:
    """The rows of one series, or of all series of a machine, in each table of a shard's state.

    Args:
        job: The job.
        segments: The segments of the shard by name.
        series: Values of key columns by name; columns that are not given match all.

    Yields:
        Name of the segment and table, and the rows.
    """
    for segment, name, table in _keyed(segments, tuple(series)):
        rows = table.filter(pl.all_horizontal(pl.col(c).cast(pl.String) == value for c, value in series.items()))
        if rows.height:
            yield f"{job.name} {segment} {name}", rows


def _keyed(segments: Mapping[str, bytes], key: tuple[str, ...]) -> Iterator[tuple[str, str, pl.DataFrame]]:
    """The tables that have the key columns, with the names of their segments and their own."""
    for segment, value in sorted(segments.items()):
        tables: Tables = unpack(value) if segment != NOTES else {}
        for name, table in tables.items():
            if set(key) <= set(table.columns):
                yield segment, name, table


def rows_as_dicts(table: pl.DataFrame) -> list[dict[str, Any]]:
    """Rows as plain data for JSON."""
    return table.with_columns(pl.selectors.categorical().cast(pl.String)).to_dicts()
