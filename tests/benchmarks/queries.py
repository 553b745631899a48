"""Streaming queries run one after the other in one Spark session, each warmed up, then timed.

Each query first warms up on the same records in many small micro-batches, because the JVM compiles for a while; then it
is started anew and reads them all in micro-batches of one size. Rate = records of the batches that count ÷ their wall
time (Spark's own `triggerExecution`).
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from confluent_kafka import Consumer, TopicPartition
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from rich.console import Console

from deploy.artifacts import spark_jars
from deploy.java import java_home
from engine.kafka.admin import ensure_topics
from engine.spark.cluster import Cluster
from engine.spark.query import BatchReport, Runtime, start
from engine.spark.session import StartingSpark, end
from engine.spec.job import Job
from pipelines.contracts import topics
from pipelines.contracts.settings import Settings
from pipelines.jobs import chain as jobs

say = Console(stderr=True).print
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
Begin = Callable[[str, Path, int], StreamingQuery]
"""Starts a query of one's own: the topic that it writes, its checkpoint, messages of a micro-batch."""


@contextmanager
def session(settings: Settings, preload: Sequence[str] = (), cluster: Cluster | None = None) -> Iterator[SparkSession]:
    """A Spark session with two cores of this machine, or on a cluster.

    Args:
        settings: Its state directory.
        preload: Modules for the Python workers, besides those of our jobs.
        cluster: The cluster; ``None``: a local session.
    """
    work = settings.state / "bench" / "spark"
    starting = StartingSpark(spark_jars(), java_home(), work, log=work / "spark.log", cluster=cluster)
    spark = starting.session(2, (*jobs.MODULES, *preload))
    try:
        yield spark
    finally:
        end(spark)


class Queries:
    """Queries over the topics of one namespace.

    Args:
        spark: The session.
        settings: Kafka, state directory, namespace.
        warm_up: Micro-batches of each query's warm-up.
        share: Share of the records that they take at the most.

    Attributes:
        durations: Milliseconds of the micro-batches that counted, by Spark's name of the part; ``stateCommit`` is the
            time in which a task stores its state.
    """

    def __init__(self, spark: SparkSession, settings: Settings, warm_up: int, share: float = 0.5) -> None:
        self.spark, self.settings, self.warm_up, self.share = spark, settings, warm_up, share
        self.bootstrap = settings.kafka.bootstrap or ""
        self.work = settings.state / "bench" / settings.namespace.rstrip(".")
        self.durations: Counter[str] = Counter()

    def topic(self, name: str) -> str:
        """The full name of a topic; it is made if need be."""
        wanted = {self.settings.topic(name): topics.config(topics.TELEMETRY)}
        ensure_topics(self.bootstrap, wanted, self.settings.kafka.partitions)
        return self.settings.topic(name)

    def theirs(self, name: str, begin: Begin, records: int, batch: int, since: float = 0.0) -> float:
        """The rate of a query written by hand; what it writes is topic ``name``.

        Args:
            name: Of the query.
            begin: Starts it.
            records: Messages that it reads.
            batch: Those of one micro-batch.
            since: Share of the micro-batches that is passed over at the beginning, besides the first one.
        """

        def started(target: str, most: int) -> StreamingQuery:
            return begin(self.topic(target), self.work / target, most)

        self._warm(started(f"warm.{name}", self._few(records)))
        return self._rate(started(name, batch), {}, name, since)

    def ours(self, name: str, job: Job, records: int, batch: int, since: float = 0.0) -> float:
        """The rate of a job of ours, which writes topic ``name``; arguments as those of `theirs`."""
        self.spark.conf.set("spark.sql.codegen.wholeStage", "false")
        self.spark.conf.set("spark.sql.codegen.factoryMode", "NO_CODEGEN")
        self.spark.conf.set("spark.sql.streaming.noDataMicroBatches.enabled", "false")
        self.spark.conf.set("spark.sql.streaming.stateStore.providerClass", ROCKSDB)
        messages = sum(self.messages(topic) for topic in job.topics)
        ledger = self.topic(topics.LEDGER)

        def started(target: str, most: int, reports: dict[int, BatchReport]) -> StreamingQuery:
            named = replace(job, name=target, output=replace(job.output, topic=self.topic(target)))
            runtime = Runtime(
                self.bootstrap,
                self.work / "checkpoints",
                shards=2,
                trigger="0ms",
                max_messages=most,
                max_records=most,
                ledger=ledger,
                owner=self.settings.owner,
                output=self.settings.engine.output,
            )
            return start(self.spark, named, runtime, lambda r: reports.setdefault(r.batch_id, r) and None)

        self._warm(started(f"warm.{name}", self._few(messages), {}))
        reports: dict[int, BatchReport] = {}
        return self._rate(started(name, max(1, messages * batch // records), reports), reports, name, since)

    def _few(self, messages: int) -> int:
        """Messages of a micro-batch of the warm-up."""
        return max(1, int(self.share * messages) // self.warm_up)

    def _warm(self, query: StreamingQuery) -> None:
        """Lets it run for some micro-batches, or until it has read everything."""
        idle = 0
        while idle < 5 and (query.lastProgress or {"batchId": 0})["batchId"] < self.warm_up:
            if error := query.exception():
                raise error
            busy = query.lastProgress is None or query.status["isDataAvailable"] or query.status["isTriggerActive"]
            idle = 0 if busy else idle + 1
            time.sleep(0.2)
        query.stop()

    def _rate(self, query: StreamingQuery, reports: dict[int, BatchReport], label: str, since: float) -> float:
        """Of all batches but the first ones and the last."""
        query.processAllAvailable()
        progress = [p for p in query.recentProgress if p["numInputRows"] > 0]
        query.stop()
        counted = progress[max(1, int(since * len(progress))) : -1]
        if reports:
            rows = [sum(s.records_in for s in reports[p["batchId"]].stats) for p in counted]
        else:
            rows = [p["numInputRows"] for p in counted]
        for each in counted:
            self.durations.update({name: int(ms) for name, ms in each["durationMs"].items()})
            states = each["stateOperators"]
            self.durations["stateCommit"] += sum(int(s["commitTimeMs"]) // s["numShufflePartitions"] for s in states)
        seconds = sum(p["durationMs"]["triggerExecution"] for p in counted) / 1000
        rate = sum(rows) / seconds
        say(f"{label}: {sum(rows):,} records in {seconds:.1f} s over {len(counted)} batches: {rate:,.0f} /s")
        return rate

    def messages(self, topic: str) -> int:
        """How many a topic holds, markers of transactions included."""
        consumer = Consumer({"bootstrap.servers": self.bootstrap, "group.id": "bench"})
        partitions = consumer.list_topics(topic, 10).topics[topic].partitions
        ends = [consumer.get_watermark_offsets(TopicPartition(topic, p), 10) for p in partitions]
        consumer.close()
        return sum(high - low for low, high in ends)
