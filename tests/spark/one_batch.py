"""Runs a query over one more micro-batch, each time with a new start."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from engine.runtime.messages import Message
from engine.spark.query import collected, operated
from engine.spec.job import Job
from engine.testing.encoding import kafka_rows
from engine.testing.scripted_stream import Batch
from engine.testing.written import Row, Written

SHARDS = 2


def one_batch(spark: SparkSession, job: Job, folder: Path, batch: Batch, checkpoint: Path, begun: bool) -> list[Row]:
    """Runs the query until it has read the micro-batch; returns what it wrote.

    Args:
        spark: The session.
        job: The job.
        folder: Holds the micro-batches of before as files.
        batch: The new one.
        checkpoint: The checkpoint of the query.
        begun: True if the checkpoint has an initial state.
    """
    number = len(list(folder.glob("*")))
    pq.write_table(pa.concat_tables(kafka_rows(job, batch.entries, number * 100_000)), folder / f"{number:04}.parquet")
    made: list[Message] = []

    def write(frame: DataFrame, _number: int) -> None:
        made.extend(message for some in collected(frame) for message in some)

    schema = "value binary, topic string, partition int, offset bigint, arrived bigint"
    rows = spark.readStream.schema(schema).parquet(str(folder))
    query = (
        operated(rows, job, SHARDS, checkpoint if begun else None)
        .writeStream.option("checkpointLocation", str(checkpoint))
        .outputMode("update")
        .trigger(availableNow=True)
        .foreachBatch(write)
        .start()
    )
    query.awaitTermination()
    return Written.of(job, made).rows
