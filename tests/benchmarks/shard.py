"""One shard of the detector job without Spark and Kafka: where the CPU time of a row goes."""

from __future__ import annotations

import time
from collections.abc import Iterator
from hashlib import sha256
from typing import Any

import polars as pl
import pyarrow as pa

from engine.columns.partitioning import slots
from engine.formats import columnar
from engine.formats.heartbeat import HEARTBEAT
from engine.runtime.intake import KAFKA, read
from engine.runtime.shard import ROWS_A_MESSAGE, STATS, ShardOperator, to_table
from engine.spark.bundles import bundled, unbundled
from engine.spec.record import Record
from engine.state.segments import DictSegments
from pipelines.contracts import topics
from pipelines.contracts.records import Features
from pipelines.contracts.settings import Settings, load
from pipelines.jobs.detectors.job import detector
from tests.benchmarks.detector import FeatureLoad

_BEGIN = 1_784_000_000_000
_SHARDS = 2


def run(keys: int, windows: int, windows_a_batch: int, emit: str, outliers: float) -> dict[str, Any]:
    """CPU microseconds a row of decoding, operator, bundling for the JVM and back; of all batches but the first.

    Args:
        keys: Series of both shards.
        windows: Of each series.
        windows_a_batch: Windows that a micro-batch brings.
        emit: The setting ``detector.emit``.
        outliers: Share of the values that are outliers.

    Returns:
        The figures; ``verdicts`` counts what was written, ``state_bytes`` what the state holds at the end.
    """
    settings = load(**{"detector.emit": emit})
    job, state, digest = detector(settings), DictSegments(), sha256()
    spent: dict[str, float] = dict.fromkeys(("read", "operator", "bundle", "unbundle"), 0.0)
    rows = verdicts = 0
    novelties, made = settings.writes(topics.NOVELTIES), FeatureLoad(keys, windows, _BEGIN, outliers)
    for number, batch in enumerate(_batches(settings, made, windows_a_batch)):
        marks = [time.process_time()]
        intake = read(job, [batch], 0)
        count = sum(table.num_rows for table in intake.records)
        marks.append(time.process_time())
        messages = list(ShardOperator(job, 0, _SHARDS).run(intake, state))
        marks.append(time.process_time())
        bundles = bundled(messages)
        marks.append(time.process_time())
        list(unbundled(pa.Table.from_pandas(bundles)))
        marks.append(time.process_time())
        for some in messages:
            for message in some:
                verdicts += message.topic == novelties
                digest.update(b"" if some.topic == STATS else message.key + b"|" + message.value + b"\n")
        if number:
            rows += count
            for part, begin, end in zip(spent, marks[:-1], marks[1:], strict=True):
                spent[part] += end - begin
    figures = {part: round(seconds / rows * 1e6, 2) for part, seconds in spent.items()}
    return {
        "series": keys,
        "emit": emit,
        "rows": rows,
        "verdicts": verdicts,
        "microseconds_a_row": figures,
        "state_bytes": sum(map(len, state.values.values())),
        "sha256": digest.hexdigest()[:16],
    }


def _batches(settings: Settings, made: FeatureLoad, windows: int) -> Iterator[pa.Table]:
    """Kafka rows of the first shard: some windows each, and heartbeats of what operators say."""
    chunks = list(made.chunks())[:-1]
    for first in range(0, len(chunks), windows):
        some = pl.concat(chunks[first : first + windows])
        yield kafka_rows(settings, topics.FEATURES, Features, some, _SHARDS, number=first)


def kafka_rows(
    settings: Settings,
    name: str,
    record: type[Record],
    records: pl.DataFrame,
    shards: int,
    number: int = 0,
    watermark: int | None = None,
) -> pa.Table:
    """Kafka rows of the first shard with some records, and heartbeats of what operators say.

    Args:
        settings: The pipeline's.
        name: The topic, without its namespace.
        record: The type of the records.
        records: Of all shards.
        shards: Number of shards.
        number: Number of the micro-batch.
        watermark: Up to where the records are complete, epoch milliseconds; ``None``: until their last instant.
    """
    partitions, time = settings.kafka.partitions, "window_end" if "window_end" in records.columns else "time"
    where, end = slots(records["entity"], partitions), int(records[time].max())  # type: ignore[arg-type]
    rows: list[tuple[bytes, str, int, int, int]] = []
    for partition in range(0, partitions, shards):
        for piece in records.filter(pl.Series(where == partition)).iter_slices(ROWS_A_MESSAGE):
            until = int(piece[time].max()) - 1 if watermark is None else watermark  # type: ignore[arg-type]
            value = columnar.encode(to_table(piece, record), until)
            rows.append((value, settings.topic(name), partition, number * 1000 + len(rows), end))
    for topic in (topics.RULES, topics.LABELS, topics.CHANGES) if name == topics.FEATURES else ():
        rows += [(HEARTBEAT, settings.topic(topic), p, number, end) for p in range(partitions)]
    return pa.Table.from_pylist([dict(zip(KAFKA.names, row, strict=True)) for row in rows], schema=KAFKA)
