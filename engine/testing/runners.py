"""Runs a job over a `TestStream`: by the specification, by the operator, or as if the input had ended."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from engine.columns.partitioning import slots
from engine.reference import Arrival, step_by_step
from engine.runtime.intake import tagged
from engine.spec.duration import END_OF_TIME, NEVER
from engine.spec.inputs import INPUT, schema
from engine.spec.job import Job
from engine.spec.operator import SIDE, Progress
from engine.spec.source import Source
from engine.spec.steps import Where, apply, row_by_row
from engine.state.segments import DictSegments, ShardState
from engine.testing.driven import Driven
from engine.testing.encoding import fed_columns
from engine.testing.scripted_stream import ABORT, RESTART, TestStream
from engine.testing.written import History, Written
from engine.vectorized.beyond import set_apart
from engine.vectorized.build import build

Row = dict[str, Any]
Cases = Sequence[tuple[Job, TestStream]]


class Run(History):
    """The output of a job for a stream: `rows`, `late`, `dead`, `watermarks`, and `written` for each micro-batch.

    The reference writes no dead letters; a bounded run is one micro-batch.
    """

    def final(self, key: tuple[str, ...]) -> dict[tuple[Any, ...], Row]:
        """The last row of each window, by key, start and end; without windows that were retracted."""
        last: dict[tuple[Any, ...], Row] = {}
        for row in self.rows:
            name = (*(row[k] for k in key), row["window_start"], row["window_end"])
            if row.get("retraction"):
                last.pop(name, None)
            else:
                last[name] = row
        return last


def run(job: Job, stream: TestStream, on: str = "operator", shards: int = 1) -> Run:
    """Runs a job.

    Args:
        job: The job; the ``formats`` of its inputs must have the topics of the stream.
        stream: The input.
        on: ``"reference"``: the specification; ``"operator"``: the sharded operator with its codecs, state and
            partitions, as on Spark; ``"spark"``: the same in a Spark query with its checkpoints; ``"bounded"``: all
            records in event-time order, whatever the watermarks.
        shards: Number of shards.
    """
    return run_all([(job, stream)], on, shards)[0]


def run_all(cases: Sequence[tuple[Job, TestStream]], on: str = "operator", shards: int = 1) -> list[Run]:
    """Runs several jobs, each over a stream of its own; on Spark in one query, which saves seconds per job."""
    fed = [(fed_columns(job), stream) for job, stream in cases]
    return [Run(written=written) for written in RUNNERS[on](fed, shards)]


def _reference(cases: Cases, shards: int) -> list[list[Written]]:
    return [
        [_split(job, o.rows, o.late, o.watermarks[-1]) for o in step_by_step(job, stream.entries())]
        for job, stream in cases
    ]


def _split(job: Job, rows: list[Row], late: list[Row], watermark: int) -> Written:
    """Splits results by the outputs to which they go; conditions are evaluated for one result at a time."""

    def of(name: str | None) -> list[Row]:
        return [{k: v for k, v in row.items() if k != SIDE} for row in rows if row.get(SIDE) == name]

    main, sides = of(None), {}
    for side in job.side:
        if written := of(side.name) + (row_by_row([Where(side.where)], main) if side.where else []):
            sides[side.name] = written
    return Written(main, late, watermark=watermark, side=sides)


def _operator(cases: Cases, shards: int) -> list[list[Written]]:
    return [_driven(job, stream, shards).written for job, stream in cases]


def _driven(job: Job, stream: TestStream, shards: int) -> Driven:
    driven = Driven(job, shards)
    for batch in stream.batches:
        if batch.then is ABORT:
            lost = Driven(job, shards, [_copy(state) for state in driven.states], offset=driven.offset)
            lost.run([batch.entries])
        driven.run([batch.entries])
        if batch.then is RESTART:
            driven.states = [_copy(state) for state in driven.states]
    return driven


def _spark(cases: Cases, shards: int) -> list[list[Written]]:
    from engine.testing.spark_runs import run_on_spark  # noqa: PLC0415  PySpark is heavy: only needed when a test asks for Spark

    return run_on_spark(cases, shards)


def _bounded(cases: Cases, shards: int) -> list[list[Written]]:
    written = []
    for job, stream in cases:
        records = {topic: [_stamped(job, one) for one in arrivals] for topic, arrivals in stream.by_topic().items()}
        written.append([_split(job, *bounded(job, records, shards), END_OF_TIME)])
    return written


def _stamped(job: Job, arrival: Arrival) -> Row:
    """A record with the time that the job works on; in a bounded run the clock of a shard is at its arrival."""
    return arrival.record if job.clock == "event" else arrival.record | {job.time: arrival.arrived}


def _copy(state: DictSegments) -> DictSegments:
    """Copies a state as bytes, as only these are left when the process is gone."""
    copy = DictSegments()
    copy.values = {name: bytes(value) for name, value in state.values.items()}
    return copy


RUNNERS: dict[str, Callable[[Cases, int], list[list[Written]]]] = {
    "reference": _reference,
    "operator": _operator,
    "spark": _spark,
    "bounded": _bounded,
}


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
