"""A job as a Structured Streaming query: Kafka → map side → sharded operator → a Kafka transaction per micro-batch."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import Literal

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.streaming.query import StreamingQuery

from engine.address import spark_options
from engine.kafka.admin import partition_counts
from engine.kafka.exactly_once import LEDGER_TOPIC, TransactionalWriter
from engine.kafka.offsets import Offsets
from engine.kafka.shard_output import ASSIGNMENT, Claim, Place, claim
from engine.runtime import map_side as mapside
from engine.runtime.messages import Outgoing
from engine.runtime.shard import STATS, Stats
from engine.spark import shared_memory, sockets
from engine.spark.bundles import OUTPUT, unbundled
from engine.spark.stateful import ShardProcessor
from engine.spark.workers import is_local
from engine.spec.decoder import TOMBSTONE
from engine.spec.duration import DurationField
from engine.spec.job import Job
from engine.state import initial


@dataclass(frozen=True)
class Runtime:
    """Where and how queries run.

    Args:
        bootstrap: ``host:port`` of a broker; an `engine.address.Address` if the broker wants a login.
        checkpoints: Directory of the checkpoints of all jobs.
        shards: Number of shards of each job; fixed at its first micro-batch.
        trigger: Shortest time between micro-batches.
        max_records: Largest number of messages in a micro-batch of columnar topics.
        max_messages: Largest number of messages in a micro-batch of other topics.
        max_documents: Largest number of messages in a micro-batch of the sink.
        max_bytes: Most bytes of messages in a micro-batch, without compression: each partition has an equal share, and
            its first message is read however large it is. Known to the Kafka source of `deploy.bounded_batches` only.
        skip_missing: True if messages that Kafka has removed before they were read are left out; otherwise a job fails.
        ledger: Topic of the ledger.
        owner: Put before the names of jobs in transactional ids and consumer groups.
        output: Who writes the results: the driver in one transaction per micro-batch, or the task of each shard in one
            of its own; ``auto``: the driver on one machine, the shards on a cluster.
        stopping: Event that is set when the jobs are to stop; it ends their waiting for Kafka.
        writers: The latest writer of each job.
    """

    bootstrap: str
    checkpoints: Path
    shards: int = 2
    trigger: DurationField = DurationField("trigger", "200ms")
    max_records: int = 2_000
    max_messages: int = 400_000
    max_documents: int = 50_000
    max_bytes: int = 64_000_000
    skip_missing: bool = False
    ledger: str = LEDGER_TOPIC
    owner: str = ""
    output: Literal["auto", "driver", "shards"] = "auto"
    stopping: threading.Event = field(default_factory=threading.Event)
    writers: dict[str, TransactionalWriter] = field(default_factory=dict)


@dataclass(frozen=True)
class BatchReport:
    """Report on one micro-batch of a job, over all shards.

    Attributes:
        seconds: Wall time from planning to the committed transaction.
    """

    job: str
    batch_id: int
    stats: tuple[Stats, ...]
    seconds: float


Listener = Callable[[BatchReport], None]


def start(
    spark: SparkSession,
    job: Job,
    runtime: Runtime,
    listener: Listener | None = None,
    begin: Offsets | None = None,
    instead: DataFrame | None = None,
) -> StreamingQuery:
    """Starts the query of a job; it goes on where the checkpoint ends.

    Args:
        spark: The session.
        job: The job.
        runtime: Where and how it runs.
        listener: Is called with the report of each micro-batch.
        begin: Where a new checkpoint begins to read: the offset of some partitions; the others begin with their first
            message. A checkpoint that exists knows its place; one with an initial state (`engine.state.initial`) that
            was never started begins where that says.
        instead: Kafka rows from elsewhere, with the offsets of the topics; see `read`. The query ends with them, and
            the next one on the same checkpoint reads Kafka from there.
    """
    place = Place(runtime.bootstrap, runtime.owner + job.name, runtime.ledger)
    by_shards = runtime.output == "shards" or (runtime.output == "auto" and not is_local(spark))
    claims, writer = list[Claim](), list[TransactionalWriter]()

    def write(frame: DataFrame, batch_id: int) -> None:
        began = time.perf_counter()
        if not claims:
            shards = runtime.shards if by_shards else 0
            claims.append(claim(place, checkpoint_id(runtime, job.name), shards, runtime.stopping))
            if not by_shards:
                writer.append(writer_of(job.name, runtime))
        if by_shards:
            frame.sparkSession.sparkContext.setLocalProperty(ASSIGNMENT, claims[0].assignment(batch_id).text())
        messages = collected(frame)
        if writer:
            writer[0].write(batch_id, claims[0].missing(batch_id, messages))
        if listener:
            stats = tuple(Stats.of(message) for some in messages if some.topic == STATS for message in some)
            listener(BatchReport(job.name, batch_id, stats, time.perf_counter() - began))

    most = runtime.max_records if any(source.columnar for source in job.inputs) else runtime.max_messages
    checkpoint = runtime.checkpoints / job.name
    taken_over = initial.offsets(checkpoint)
    first = begin if taken_over is None else taken_over
    rows = read(spark, job.topics, runtime, most, first, keys=bool(job.compacted)) if instead is None else instead
    plan = operated(rows, job, runtime.shards, None if taken_over is None else checkpoint, place if by_shards else None)
    return _start(plan, job.name, runtime, write, ends=instead is not None)


def operated(
    rows: DataFrame, job: Job, shards: int, checkpoint: Path | None = None, place: Place | None = None
) -> DataFrame:
    """The plan of a job, from Kafka rows (see `read`) to messages: map side or direct routing, then the shards.

    Args:
        rows: The rows.
        job: The job.
        shards: Number of shards.
        checkpoint: The checkpoint, if it has an initial state (`engine.state.initial`); otherwise ``None``.
        place: Where the shards write by themselves; ``None``: their messages are in the result.
    """
    rows.sparkSession.conf.set("spark.sql.shuffle.partitions", str(shards))
    inputs = _by_partition(rows, job, shards) if job.direct(shards) else _blobs(rows, job, shards)
    memory = shared_memory.folder_of(job.name) if is_local(rows.sparkSession) else None
    return inputs.groupBy("slot").transformWithStateInPandas(
        ShardProcessor(job, shards, checkpoint, memory, place), OUTPUT, "update", "None"
    )


def collected(frame: DataFrame) -> list[Outgoing]:
    """Collects the messages of one micro-batch in the driver."""
    return list(unbundled(frame.toArrow()))


def drain(
    spark: SparkSession,
    name: str,
    topics: Sequence[str],
    runtime: Runtime,
    write: Callable[[pa.Table, int], None],
    most: int,
    every: int = 0,
) -> StreamingQuery:
    """Hands each micro-batch of some topics to ``write``, at least once and in order: it is repeated after a crash.

    Args:
        spark: The session.
        name: Name of the job.
        topics: The topics to read.
        runtime: Where and how the query runs.
        write: Takes Kafka rows (value, topic, partition, offset, arrived) and the number of the micro-batch.
        most: Largest number of messages in a micro-batch.
        every: Milliseconds for which messages are gathered, unless there are enough for a micro-batch before.
    """
    begin = initial.offsets(runtime.checkpoints / name)
    rows = read(spark, topics, runtime, most, begin, gather=every).coalesce(1)
    return _start(rows, name, runtime, lambda frame, batch_id: write(frame.toArrow(), batch_id))


def _start(
    frame: DataFrame, name: str, runtime: Runtime, write: Callable[[DataFrame, int], None], ends: bool = False
) -> StreamingQuery:
    frame.sparkSession.sparkContext.setLocalProperty("spark.scheduler.pool", name)
    folder = sockets.folder_of(frame.sparkSession)

    def each(batch: DataFrame, batch_id: int) -> None:
        if folder:
            sockets.tend(batch.sparkSession, folder, batch_id)
        write(batch, batch_id)

    query = (
        frame.writeStream.queryName(name)
        .option("checkpointLocation", str(runtime.checkpoints / name))
        .outputMode("update")
        .foreachBatch(each)
    )
    every = f"{int(runtime.trigger)} milliseconds"
    return (query.trigger(availableNow=True) if ends else query.trigger(processingTime=every)).start()


def writer_of(name: str, runtime: Runtime) -> TransactionalWriter:
    """A new writer for a job whose checkpoint exists; the writer of an earlier query that failed is closed."""
    if name in runtime.writers:
        runtime.writers.pop(name).close()
    job, epoch = runtime.owner + name, checkpoint_id(runtime, name)
    runtime.writers[name] = TransactionalWriter(runtime.bootstrap, job, runtime.ledger, epoch, runtime.stopping)
    return runtime.writers[name]


def checkpoint_id(runtime: Runtime, name: str) -> str:
    """The identity that Spark gave the checkpoint of a job when it created it."""
    return str(json.loads((runtime.checkpoints / name / "metadata").read_text())["id"])


def read(
    spark: SparkSession,
    topics: Sequence[str],
    runtime: Runtime,
    most: int,
    begin: Offsets | None = None,
    gather: int = 0,
    keys: bool = False,
) -> DataFrame:
    """Kafka rows of committed messages: value, topic, partition, offset, arrived (epoch ms); arguments as `start`.

    With ``keys`` the value of a message that has none is `TOMBSTONE` and its key.
    """
    options = {
        **spark_options(runtime.bootstrap),
        "subscribe": ",".join(topics),
        "startingOffsets": _starting(runtime.bootstrap, topics, begin) if begin else "earliest",
        "failOnDataLoss": "false" if runtime.skip_missing else "true",
        "maxOffsetsPerTrigger": str(most),
        "maxBytesPerTrigger": str(runtime.max_bytes),
        "kafka.isolation.level": "read_committed",
        "kafka.max.partition.fetch.bytes": str(16 << 20),
        "kafka.fetch.max.bytes": str(64 << 20),
        "kafka.max.poll.records": "20000",
        # a range may end in a transaction marker, which is no record: each reader would wait so long for one
        "kafka.fetch.max.wait.ms": "10",
    }
    value = F.coalesce("value", F.concat(F.lit(TOMBSTONE), "key")).alias("value") if keys else F.col("value")
    if gather:
        options |= {"minOffsetsPerTrigger": str(most), "maxTriggerDelay": f"{gather}ms"}
    return (
        spark.readStream.format("kafka")
        .options(**options)
        .load()
        .select(value, "topic", "partition", "offset", F.unix_millis("timestamp").alias("arrived"))
    )


def _starting(bootstrap: str, topics: Sequence[str], begin: Offsets) -> str:
    """The offsets in the form of Spark, which wants to know the place of every partition; -2 is its first message."""
    counts = partition_counts(bootstrap, topics)
    return json.dumps({t: {p: begin.get((t, p), -2) for p in range(n)} for t, n in sorted(counts.items())})


def _by_partition(rows: DataFrame, job: Job, shards: int) -> DataFrame:
    """Kafka rows as they are, each with its shard; rows of broadcast topics once for each shard."""
    labels = F.array(*(F.lit(label) for label in shard_labels(rows.sparkSession, shards)))
    rows = rows.coalesce(shards).withColumn("shard", F.col("partition") % shards)
    if job.broadcast:
        broadcast, every = F.col("topic").isin(*sorted(job.broadcast)), F.array(*map(F.lit, range(shards)))
        rows = rows.withColumn("shard", F.explode(F.when(broadcast, every).otherwise(F.array("shard"))))
    return rows.withColumn("slot", F.get(labels, F.col("shard")))


def _blobs(rows: DataFrame, job: Job, shards: int) -> DataFrame:
    labels = shard_labels(rows.sparkSession, shards)
    return rows.coalesce(shards).mapInArrow(
        partial(map_side, job, shards, labels), "shard int, slot int, kind string, value binary"
    )


def map_side(job: Job, shards: int, labels: list[int], batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """From Kafka rows to one row for each blob, with the label of its shard as slot; a last row has the wall time."""
    schema = pa.schema([("shard", pa.int32()), ("slot", pa.int32()), ("kind", pa.string()), ("value", pa.binary())])
    began = time.perf_counter()
    tables = (pa.Table.from_batches([batch]) for batch in batches)
    blobs = list(mapside.run(job, shards, tables))
    took = (time.perf_counter() - began) * 1000
    for blob in [*blobs, *(mapside.Blob(blob.shard, mapside.COST, b"%f" % took) for blob in blobs[-1:])]:
        row = {"shard": [blob.shard], "slot": [labels[blob.shard]], "kind": [blob.kind], "value": [blob.value]}
        yield pa.RecordBatch.from_pydict(row, schema=schema)


@cache
def shard_labels(spark: SparkSession, shards: int) -> list[int]:
    """For each shard a number that Spark's hash sends to a partition of its own, so that shards run in parallel."""
    labels: dict[int, int] = {}
    for row in spark.range(shards * 64).select("id", F.expr(f"pmod(hash(cast(id as int)), {shards}) as p")).collect():
        labels.setdefault(row.p, row.id)
    return [labels[p] for p in range(shards)]
