"""Several jobs in one Spark query, with the stages of a single job, because planning a query takes seconds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from engine.runtime.intake import KAFKA
from engine.runtime.messages import Message
from engine.spark.bundles import OUTPUT
from engine.spark.query import collected, map_side, operated
from engine.spark.stateful import ShardProcessor
from engine.spec.job import Job

JOB = "job"
"""Column of the rows: the number of the job that reads them."""
_BLOBS = "shard int, slot int, kind string, value binary"


def plan(rows: DataFrame, jobs: Sequence[Job], shards: int) -> DataFrame:
    """The plan from Kafka rows with the column `JOB` to messages, whose topics begin with the number of the job."""
    if len(jobs) == 1:
        return operated(rows.drop(JOB), jobs[0], shards)
    rows.sparkSession.conf.set("spark.sql.shuffle.partitions", str(shards))
    blobs = rows.coalesce(shards).mapInArrow(partial(_map_sides, jobs, shards), _BLOBS)
    return blobs.groupBy("slot").transformWithStateInPandas(_Processors(jobs, shards), OUTPUT, "update", "None")


def told_apart(frame: DataFrame, jobs: int) -> list[list[Message]]:
    """Splits the messages of one micro-batch by job."""
    messages = [message for outgoing in collected(frame) for message in outgoing]
    if jobs == 1:
        return [messages]
    by_job: list[list[Message]] = [[] for _ in range(jobs)]
    for message in messages:
        number, _, topic = message.topic.partition("/")
        by_job[int(number)].append(Message(topic, message.partition, message.key, message.value))
    return by_job


def _map_sides(jobs: Sequence[Job], shards: int, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        of = batch.column(JOB)
        for number in sorted(set(of.to_pylist())):
            slots = [number * shards + shard for shard in range(shards)]
            rows = batch.filter(pc.equal(of, number)).select(KAFKA.names)
            yield from map_side(jobs[number], shards, slots, iter([rows]))


class _Processors(StatefulProcessor):
    """The processors of all jobs; Spark keeps separate state for each slot, which is a shard of a job."""

    def __init__(self, jobs: Sequence[Job], shards: int) -> None:
        self.shards, self.processors = shards, [ShardProcessor(job, shards) for job in jobs]

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Called by Spark once for each task."""
        self.processors[0].init(handle)
        for processor in self.processors:
            processor.segments = self.processors[0].segments

    def handleInputRows(  # type: ignore[override]  # noqa: N802
        self,
        key: Any,
        rows: Iterator[pd.DataFrame],
        timerValues: Any,  # noqa: N803
    ) -> Iterator[pd.DataFrame]:
        """Called by Spark for each slot in each micro-batch."""
        number = key[0] // self.shards
        for written in self.processors[number].handleInputRows(key, rows, timerValues):
            yield written.assign(topic=f"{number}/" + written["topic"])

    def close(self) -> None:
        """Called by Spark at the end; there is nothing to close."""
