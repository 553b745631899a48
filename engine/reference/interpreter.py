"""Runs a job by its reference: what arrives, the watermark and the clock batch by batch, what comes out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from engine.reference.inputs import rows
from engine.reference.of import reference
from engine.runtime.input_clocks import InputClocks
from engine.spec.duration import NEVER, duration_ms
from engine.spec.job import Job
from engine.spec.operator import Progress, Row
from engine.watermarks import Marker


@dataclass(frozen=True)
class Arrival:
    """A good record, and where and when it arrived.

    Attributes:
        arrived: Arrival time at Kafka, epoch milliseconds.
    """

    topic: str
    partition: int
    arrived: int
    record: Row


@dataclass(frozen=True)
class Watermark:
    """The writer's watermark of a partition: after this, the writer sends no record older than it."""

    topic: str
    partition: int
    arrived: int
    watermark: int


@dataclass(frozen=True)
class Heartbeat:
    """A heartbeat of a partition: the partition is alive and has no record."""

    topic: str
    partition: int
    arrived: int


@dataclass
class Outcome:
    """What a job makes of its input, or of one micro-batch.

    Attributes:
        rows: Results in the order they are emitted.
        late: Records that came too late, in the order they came.
        watermarks: The watermark after each batch.
    """

    rows: list[Row] = field(default_factory=list)
    late: list[Row] = field(default_factory=list)
    watermarks: list[int] = field(default_factory=list)


def interpret(job: Job, batches: Iterable[Sequence[Arrival | Watermark | Heartbeat]]) -> Outcome:
    """Runs a job over micro-batches; the records of each are taken by topic and partition, there in order of arrival.

    Raises:
        NewnormalError: ``PROCESSOR_UNKNOWN`` if the job's processor is own logic, which has no specification here.
    """
    whole = Outcome()
    for outcome in step_by_step(job, batches):
        whole.rows += outcome.rows
        whole.late += outcome.late
        whole.watermarks += outcome.watermarks
    return whole


def step_by_step(job: Job, batches: Iterable[Sequence[Arrival | Watermark | Heartbeat]]) -> Iterator[Outcome]:
    """As `interpret`: what the job makes of each micro-batch."""
    logic = reference(job.processor)
    clocks = InputClocks(job.inputs)
    for batch in batches:
        before, clock_before = clocks.watermark, clocks.clock
        now = clocks.advance(_markers(job, batch))
        entries = sorted((e for e in batch if isinstance(e, Arrival)), key=lambda e: (e.topic, e.partition))
        progress = Progress(before, now, clock_before, clocks.clock)
        records = [row for e in entries for row in rows(job.inputs, e.topic, e.record, e.arrived)]
        if job.clock == "processing":
            records = [row | {job.time: max(row[job.time], clock_before)} for row in records]
        yield Outcome(*logic.take(records, progress), [now])


def _markers(job: Job, batch: Sequence[Arrival | Watermark | Heartbeat]) -> list[Marker]:
    """One marker an entry; a writer's watermark is cut at `TimeBounds.max_ahead` beyond the arrival."""
    markers = []
    for offset, entry in enumerate(batch):
        source = next(source for source in job.inputs if entry.topic in source.formats)
        where = (entry.topic, entry.partition)
        if source.clock != "event":
            at = entry.arrived
            markers.append(Marker(*where, at, None, at, at, at, offset))
            continue
        ahead, strategy = duration_ms(source.bounds.max_ahead), source.watermark
        records = [entry.record] if isinstance(entry, Arrival) else []
        table = pa.Table.from_pylist(records, schema=source.record.arrow_schema())
        writer_watermark = strategy.message_watermark(table, entry.watermark if isinstance(entry, Watermark) else None)
        writer_watermark = None if writer_watermark is None else min(writer_watermark, entry.arrived + ahead)
        times = [record[source.time] for record in records]
        observed = strategy.observes(np.array(times, np.int64))
        spoke = NEVER if isinstance(entry, Heartbeat) else entry.arrived
        newest = max(times, default=NEVER)
        markers.append(Marker(*where, newest, writer_watermark, entry.arrived, entry.arrived, spoke, offset, observed))
    return markers
