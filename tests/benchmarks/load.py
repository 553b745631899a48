"""The load of the speed benches: samples of many series in event-time order, as JSON and as columnar log."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Protocol

import numpy as np
import polars as pl
from confluent_kafka import Producer

from datagen.kafka_writer import KafkaWriter
from engine.columns.partitioning import slots
from engine.formats import columnar
from engine.formats.heartbeat import HEARTBEAT
from engine.runtime.shard import ROWS_A_MESSAGE, to_table
from engine.spec.record import Record
from pipelines.contracts.records import Telemetry

_CHUNK = 100_000
_METRICS = 10
_ENDS = 400


@dataclass(frozen=True)
class Load:
    """Samples spread evenly over series and time, and at the end a few that let all windows close.

    Args:
        records: Their number.
        keys: Series, ten of each machine.
        span_ms: Event time from the first to the last.
        tail_ms: How long after the span the records of ``end-<n>`` come, which move the watermark of each partition.
        begin: Event time of the first.
    """

    records: int
    keys: int
    span_ms: int = 60_000
    tail_ms: int = 25_000
    begin: int = field(default=0)
    time: ClassVar[str] = "time"

    @classmethod
    def recent(cls, records: int, keys: int, span_ms: int = 60_000, tail_ms: int = 25_000) -> Load:
        """One that lies in the past, so that no clock is taken for wrong."""
        begin = (int(time.time() * 1000) - 2 * span_ms - tail_ms) // 10_000 * 10_000
        return cls(records, keys, span_ms, tail_ms, begin)

    def chunks(self) -> Iterator[pl.DataFrame]:
        """Columns of `Telemetry`, some hundred thousand rows at a time."""
        rng = np.random.default_rng(7)
        for first in range(0, self.records, _CHUNK):
            number = np.arange(first, min(first + _CHUNK, self.records))
            series = (number * 7919) % self.keys
            times = self.begin + number * self.span_ms // self.records
            yield _frame("host", series // _METRICS, series % _METRICS, times, rng.normal(100, 15, len(number)))
        ends = np.arange(_ENDS)
        yield _frame("end", ends, ends * 0, np.full(_ENDS, self.begin + self.span_ms + self.tail_ms), np.zeros(_ENDS))


def _frame(name: str, entity: np.ndarray, metric: np.ndarray, times: np.ndarray, values: np.ndarray) -> pl.DataFrame:
    frame = pl.DataFrame({"time": times, "e": entity, "m": metric, "value": values})
    return frame.select(
        "time",
        entity=pl.lit(f"{name}-") + pl.col("e").cast(pl.String),
        metric=pl.lit("metric.") + pl.col("m").cast(pl.String),
        value="value",
        kind=pl.lit("gauge"),
    )


def write_json(bootstrap: str, topic: str, load: Load) -> None:
    """One message a record, keyed by machine, as agents write them."""
    with KafkaWriter(bootstrap) as writer:
        for chunk in load.chunks():
            writer.write(topic, json_lines(chunk), chunk["entity"].to_list())


def json_lines(chunk: pl.DataFrame) -> list[str]:
    """Samples as JSON, a text each."""
    names = {name: info.alias or name for name, info in Telemetry.model_fields.items()}
    return chunk.select(pl.struct(pl.all().name.map(names.__getitem__)).struct.json_encode()).to_series().to_list()


def write_idle(bootstrap: str, topics: Sequence[str], partitions: int) -> None:
    """Heartbeats an hour apart in each partition of topics without records, so that no watermark waits for them."""
    producer, now = Producer({"bootstrap.servers": bootstrap, "log_level": 0}), int(time.time() * 1000)
    for topic in topics:
        for partition in range(partitions):
            for arrived in (now - 3_600_000, now):
                producer.produce(topic, HEARTBEAT, HEARTBEAT, partition, timestamp=arrived)
    producer.flush()


class Chunks(Protocol):
    """Records in event-time order."""

    time: ClassVar[str]

    def chunks(self) -> Iterator[pl.DataFrame]:
        """Some at a time."""


def write_columnar(bootstrap: str, topic: str, partitions: int, load: Chunks, record: type[Record] = Telemetry) -> None:
    """Record batches in the partition of their key, each with the watermark of its partition."""
    producer = Producer({"bootstrap.servers": bootstrap, "message.max.bytes": 15_000_000, "log_level": 0})
    for partition, value in columnar_messages(load.chunks(), load.time, partitions, record):
        producer.produce(topic, value, partition=partition)
        producer.flush()


def columnar_messages(
    chunks: Iterable[pl.DataFrame], time: str, partitions: int, record: type[Record] = Telemetry
) -> Iterator[tuple[int, bytes]]:
    """Record batches with the partition of their key, each with the watermark of its partition."""
    waiting: dict[int, list[pl.DataFrame]] = {p: [] for p in range(partitions)}

    def full(partition: int, least: int) -> Iterator[tuple[int, bytes]]:
        if sum(rows.height for rows in waiting[partition]) < least:
            return
        rows = pl.concat(waiting[partition])
        waiting[partition] = []
        for piece in rows.iter_slices(ROWS_A_MESSAGE):
            yield partition, columnar.encode(to_table(piece, record), int(piece[time].max()) - 1)  # type: ignore[arg-type]

    for chunk in chunks:
        where = slots(chunk["entity"], partitions)
        for partition, rows in waiting.items():
            rows.append(chunk.filter(pl.Series(where == partition)))
            yield from full(partition, ROWS_A_MESSAGE)
    for partition in waiting:
        yield from full(partition, 1)
