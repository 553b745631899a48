"""Runs a job by its reference, micro-batch by micro-batch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from engine.reference.entries import Arrival, Entry
from engine.reference.of import reference
from engine.reference.watermarks import JobWatermark
from engine.spec.duration import NEVER
from engine.spec.inputs import INPUT, schema
from engine.spec.job import Job
from engine.spec.operator import Progress, Row
from engine.spec.source import Source
from engine.spec.steps import row_by_row


@dataclass
class Outcome:
    """The output of a job for its whole input, or for one micro-batch.

    Attributes:
        rows: Results in the order they are emitted.
        late: Records that came too late, in the order they came.
        watermarks: The watermark after each micro-batch.
    """

    rows: list[Row] = field(default_factory=list)
    late: list[Row] = field(default_factory=list)
    watermarks: list[int] = field(default_factory=list)


def interpret(job: Job, batches: Iterable[Sequence[Entry]]) -> Outcome:
    """Runs a job over micro-batches. Records are taken by topic and partition, within these in order of arrival.

    Raises:
        NewnormalError: ``PROCESSOR_UNKNOWN`` if the operator of the job has no reference.
    """
    whole = Outcome()
    for outcome in step_by_step(job, batches):
        whole.rows += outcome.rows
        whole.late += outcome.late
        whole.watermarks += outcome.watermarks
    return whole


def step_by_step(job: Job, batches: Iterable[Sequence[Entry]]) -> Iterator[Outcome]:
    """Runs a job as `interpret` does, and yields the outcome of each micro-batch."""
    logic = reference(job.processor)
    watermark = JobWatermark(job.inputs)
    for batch in batches:
        before, clock_before = watermark.watermark, watermark.clock
        now = watermark.advance(batch)
        entries = [(at, e) for at, e in enumerate(batch) if isinstance(e, Arrival)]
        records: list[Row] = []
        in_log: list[int] = []
        for at, entry in sorted(entries, key=lambda e: (e[1].topic, e[1].partition)):
            for row in rows(job.inputs, entry.topic, entry.record, entry.arrived):
                number = row.get(INPUT, 0)
                decides = job.decides_in_log(job.inputs[number])
                records.append(row)
                in_log.append(watermark.in_log[number, at] if decides else NEVER)
        progress = Progress(before, now, clock_before, watermark.clock, in_log)
        if job.clock == "processing":
            records = [row | {job.time: max(row[job.time], clock_before)} for row in records]
        yield Outcome(*logic.take(records, progress), [now])


def rows(inputs: Sequence[Source], topic: str, record: dict[str, Any], arrived: int = NEVER) -> list[dict[str, Any]]:
    """The records that a job makes of a decoded record: after the steps, with the columns of `schema`."""
    records = []
    for number, source in enumerate(inputs):
        if topic in source.formats:
            stamp = {} if source.clock == "event" else {source.time: arrived}
            stepped = row_by_row(source.steps, [record | stamp], source.decoded())
            records += [_row(inputs, number, row) for row in stepped if row[source.time] is not None]
    return records


def _row(inputs: Sequence[Source], number: int, row: dict[str, Any]) -> dict[str, Any]:
    return row if len(inputs) == 1 else dict.fromkeys(schema(inputs).names) | row | {INPUT: number}
