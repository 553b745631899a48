"""Runs a job over a `TestStream` as a Spark query: map side, stateful stage and checkpoints are those of production.

Instead of Kafka the query reads files with the same columns, one file a shard and micro-batch. A crash is one: the query
fails after the shards have written their state and before the micro-batch is committed, and a new one repeats it.
"""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

from engine.job import Job
from engine.operator.intake import KAFKA
from engine.operator.shard import Message
from engine.spark.query import collected, operated
from engine.spark.session import spark_session
from engine.testing.encoding import kafka_rows
from engine.testing.stream import ABORT, RESTART, Batch, TestStream
from engine.testing.written import Written

COLUMNS = "value binary, topic string, partition int, offset bigint, arrived bigint"
_CORES = 2


class Killed(Exception):
    """Raised in the driver where `ABORT` kills a job."""


@dataclass
class SparkRun:
    """A job in a query of its own, in the session that is active, or in one that is kept until Python ends.

    Args:
        job: The job.
        shards: Number of its shards.
    """

    job: Job
    shards: int = 1
    made: dict[int, list[Message]] = field(default_factory=dict)
    offset: int = 0

    def run(self, stream: TestStream) -> list[Written]:
        """What each micro-batch wrote; of one that was repeated, what it wrote the last time."""
        directory = Path(tempfile.mkdtemp(prefix="newnormal-"))
        spark = session()
        written: list[Written] = []
        try:
            (directory / "input").mkdir()
            for number, batch in enumerate(stream.batches):
                self._place(directory / "input", number, batch)
                if batch.then is ABORT:
                    self._query(spark, directory, dies_in=number)
                if batch.then or number == len(stream.batches) - 1:
                    self._query(spark, directory)
        finally:
            shutil.rmtree(directory, ignore_errors=True)
        for number in range(len(stream.batches)):
            written.append(Written.of(self.job, self.made[number]))
            if not self.made[number] and number:  # without any message no shard ran
                written[-1].watermark = written[-2].watermark
        return written

    def _place(self, directory: Path, number: int, batch: Batch) -> None:
        """Writes the files of a micro-batch; their age is their order."""
        tasks = kafka_rows(self.job, batch.entries, self.offset)
        self.offset += sum(task.num_rows for task in tasks)
        for part in range(self.shards):
            rows = pa.concat_tables([KAFKA.empty_table(), *tasks[part :: self.shards]])
            file = directory / f"{number:06}-{part}.parquet"
            pq.write_table(rows, file)
            os.utime(file, (1_000_000 + number, 1_000_000 + number))

    def _query(self, spark: SparkSession, directory: Path, dies_in: int | None = None) -> None:
        """Starts the query, and waits until it has taken all files, or has died in a micro-batch."""

        def write(frame: DataFrame, number: int) -> None:
            messages = collected(frame)
            if number == dies_in:
                raise Killed
            self.made[number] = messages

        rows = (
            spark.readStream.schema(COLUMNS).option("maxFilesPerTrigger", self.shards).parquet(str(directory / "input"))
        )
        query = (
            operated(rows, self.job, self.shards)
            .writeStream.option("checkpointLocation", str(directory / "checkpoint"))
            .outputMode("update")
            .trigger(availableNow=True)
            .foreachBatch(write)
            .start()
        )
        try:
            query.awaitTermination()
        except StreamingQueryException as error:
            if dies_in is None or Killed.__name__ not in str(error):
                raise


def session() -> SparkSession:
    """The active session, or a local one; Python workers find the modules that this process finds."""
    active = SparkSession.getActiveSession()
    if active is not None:
        return active
    os.environ["PYTHONPATH"] = os.pathsep.join(path or os.getcwd() for path in sys.path)  # noqa: PTH109
    work = Path(tempfile.mkdtemp(prefix="newnormal-spark-"))
    atexit.register(shutil.rmtree, work, ignore_errors=True)
    made: SparkSession = spark_session([], None, _CORES, work, driver_memory="1g")
    return made
