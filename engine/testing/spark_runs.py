"""Runs jobs over `TestStream`s as a Spark query, with the map side, stateful stage and checkpoints of production.

Instead of Kafka the query reads files with the same columns, one for each shard and micro-batch. A crash is real: the
query fails after the shards have written their state and before the micro-batch is committed, and a new query repeats
it.
"""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

from engine.runtime.intake import KAFKA
from engine.runtime.messages import Message
from engine.spark.module_path import share_module_path
from engine.spark.session import spark_session
from engine.spec.job import Job
from engine.testing.encoding import kafka_rows
from engine.testing.many_jobs import JOB, plan, told_apart
from engine.testing.scripted_stream import ABORT, Batch, Sentinel, TestStream
from engine.testing.written import Written

COLUMNS = "value binary, topic string, partition int, offset bigint, arrived bigint, job int"
_CORES = 2


class KilledError(Exception):
    """Raised in the driver where `ABORT` kills a job."""


def run_on_spark(cases: Sequence[tuple[Job, TestStream]], shards: int) -> list[list[Written]]:
    """The output of each micro-batch of each case; for a repeated micro-batch, its last output.

    Jobs with a map side share a query; a job whose messages go to their shards undecoded has its own.
    """
    mapped = [number for number, (job, _) in enumerate(cases) if not job.direct(shards)]
    groups = [*([mapped] if mapped else []), *([n] for n in range(len(cases)) if n not in mapped)]
    written: dict[int, list[Written]] = {}
    for group in groups:
        directory = Path(tempfile.mkdtemp(prefix="newnormal-"))
        try:
            query = _Query([cases[n][0] for n in group], shards, directory)
            written |= zip(group, query.run([cases[n][1] for n in group]), strict=True)
        finally:
            shutil.rmtree(directory, ignore_errors=True)
    return [written[number] for number in range(len(cases))]


class _Query:
    """A checkpoint, and the queries that use it one after the other."""

    def __init__(self, jobs: Sequence[Job], shards: int, directory: Path) -> None:
        self.jobs, self.shards, self.directory = jobs, shards, directory
        self.messages: dict[int, list[list[Message]]] = {}
        self.offset = 0

    def run(self, streams: Sequence[TestStream]) -> list[list[Written]]:
        """Runs the streams together."""
        (self.directory / "input").mkdir()
        steps = schedule(streams)
        for number, step in enumerate(steps):
            self._place(number, step)
            if ABORT in step.then:
                self._go_on(dies_in=number)
            if step.then or number == len(steps) - 1:
                self._go_on()
        written: list[list[Written]] = [[] for _ in streams]
        for number, step in enumerate(steps):
            for case in step.parts:
                part = Written.of(self.jobs[case], self.messages[number][case])
                if written[case] and not self.messages[number][case]:  # nothing came, so no shard ran
                    part.watermark = written[case][-1].watermark
                written[case].append(part)
        return written

    def _place(self, number: int, step: ScheduledBatch) -> None:
        """Writes the files of a micro-batch; their age is their order."""
        tasks = []
        for case, batch in step.parts.items():
            for rows in kafka_rows(self.jobs[case], batch.entries, self.offset):
                self.offset += rows.num_rows
                tasks.append(rows.append_column(JOB, pa.array([case] * rows.num_rows, pa.int32())))
        none = KAFKA.append(pa.field(JOB, pa.int32())).empty_table()
        for part in range(self.shards):
            file = self.directory / "input" / f"{number:06}-{part}.parquet"
            pq.write_table(pa.concat_tables([none, *tasks[part :: self.shards]]), file)
            os.utime(file, (1_000_000 + number, 1_000_000 + number))

    def _go_on(self, dies_in: int | None = None) -> None:
        """Starts a query, and waits until it has read all files or has died in a micro-batch."""

        def write(frame: DataFrame, number: int) -> None:
            messages = told_apart(frame, len(self.jobs))
            if number == dies_in:
                raise KilledError
            self.messages[number] = messages

        files = session().readStream.schema(COLUMNS).option("maxFilesPerTrigger", self.shards)
        query = (
            plan(files.parquet(str(self.directory / "input")), self.jobs, self.shards)
            .writeStream.option("checkpointLocation", str(self.directory / "checkpoint"))
            .outputMode("update")
            .trigger(availableNow=True)
            .foreachBatch(write)
            .start()
        )
        try:
            query.awaitTermination()
        except StreamingQueryException as error:
            if dies_in is None or KilledError.__name__ not in str(error):
                raise


def session() -> SparkSession:
    """The active session, or a local one, whose Python workers find the same modules as this process."""
    active = SparkSession.getActiveSession()
    if active is not None:
        return active
    share_module_path()
    work = Path(tempfile.mkdtemp(prefix="newnormal-spark-"))
    atexit.register(shutil.rmtree, work, ignore_errors=True)
    started: SparkSession = spark_session([], None, _CORES, work, driver_memory="1g", log=work / "spark.log")
    return started


@dataclass
class ScheduledBatch:
    """One micro-batch of the query.

    Attributes:
        parts: The batches of the streams that have one, by number of the stream.
        then: The crashes at its end.
    """

    parts: dict[int, Batch] = field(default_factory=dict)
    then: set[Sentinel] = field(default_factory=set)


def schedule(streams: Sequence[TestStream]) -> list[ScheduledBatch]:
    """Combines streams: each keeps its order, and the n-th crashes of all streams are in one step.

    >>> from engine.testing.scripted_stream import ABORT
    >>> a = TestStream().add({"x": 1}, ABORT, {"x": 2})
    >>> b = TestStream().add({"x": 1}).add({"x": 2}).add({"x": 3}, ABORT)
    >>> [(sorted(step.parts), *(s.value for s in step.then)) for step in schedule([a, b])]
    [([1],), ([1],), ([0, 1],), ([0, 1], 'abort'), ([0],)]
    """
    pieces = [_cut(stream.batches) for stream in streams]
    steps: list[ScheduledBatch] = []
    for nth in range(max(map(len, pieces), default=0)):
        parts = {number: piece[nth] for number, piece in enumerate(pieces) if nth < len(piece)}
        length = max(map(len, parts.values()))
        these = [ScheduledBatch() for _ in range(length)]
        for number, batches in parts.items():
            for step, batch in zip(these[length - len(batches) :], batches, strict=True):
                step.parts[number] = batch
        these[-1].then = {batch.then for batch in these[-1].parts.values() if batch.then}
        steps += these
    return steps


def _cut(batches: Sequence[Batch]) -> list[list[Batch]]:
    """Splits batches into pieces, each of which but the last ends in a crash."""
    pieces: list[list[Batch]] = [[]]
    for batch in batches:
        pieces[-1].append(batch)
        if batch.then:
            pieces.append([])
    return [piece for piece in pieces if piece]
