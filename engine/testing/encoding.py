"""Encodes the entries of a stream as the Kafka rows that a job would read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any

import pyarrow as pa

from engine.formats import columnar
from engine.formats.columnar import ColumnarDecoder
from engine.formats.heartbeat import HEARTBEAT
from engine.formats.json_decoder import JsonDecoder
from engine.reference import Arrival, Heartbeat, Watermark
from engine.runtime.intake import KAFKA
from engine.spec.job import Job

Entry = Arrival | Watermark | Heartbeat


def fed_columns(job: Job) -> Job:
    """The job as the kit feeds it: what it reads as JSON comes as columns, with which a watermark can be sent."""
    inputs = []
    for source in job.inputs:
        formats = {
            t: ColumnarDecoder(source.record) if isinstance(d, JsonDecoder) else d for t, d in source.formats.items()
        }
        inputs.append(replace(source, formats=formats))
    return replace(job, inputs=tuple(inputs))


def kafka_rows(job: Job, entries: Iterable[Entry], offset: int) -> list[pa.Table]:
    """The rows of one micro-batch, a table for each source partition.

    Args:
        job: The job that reads them.
        entries: The entries in order of arrival; records that arrive together are one message.
        offset: Offset of the first message.
    """
    by_partition: dict[tuple[str, int], list[Entry]] = {}
    for entry in entries:
        by_partition.setdefault((entry.topic, entry.partition), []).append(entry)
    tables = []
    for _, own in sorted(by_partition.items()):
        tables.append(_messages(job, own, offset))
        offset += tables[-1].num_rows
    return tables


def _messages(job: Job, entries: Sequence[Entry], offset: int) -> pa.Table:
    schema = next(s.record for s in job.inputs if entries[0].topic in s.formats).arrow_schema()
    rows: list[tuple[Any, ...]] = []
    for (kind, arrived), group in groupby(entries, lambda e: (type(e), e.arrived)):
        together = list(group)
        records = [e.record for e in together if isinstance(e, Arrival)]
        writer_watermark = max((e.watermark for e in together if isinstance(e, Watermark)), default=None)
        value = columnar.encode(pa.Table.from_pylist(records, schema=schema), writer_watermark)
        value = HEARTBEAT if kind is Heartbeat else value
        rows.append((value, together[0].topic, together[0].partition, offset + len(rows), arrived))
    return pa.Table.from_pylist([dict(zip(KAFKA.names, row, strict=True)) for row in rows], schema=KAFKA)
