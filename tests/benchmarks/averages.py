"""A stateful process a key, twice: running mean and exponentially weighted mean, with a timer that tells of silence.

`Averages` is the logic for our engine, over columns of many keys; `PerKey` is what a Spark user writes in row mode: one
key at a time, state in RocksDB, got and put once a key and micro-batch, timers moved only where they must be.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from engine.operators import Logic, Turn
from engine.spec.record import Finite, Instant, Keyword, Record
from tests.benchmarks.queries import ROCKSDB

WEIGHT, EVERY, SILENCE_MS = 0.1, 5, 30_000
SCHEMA = "`@timestamp` long, `host.name` string, metric string, value double, kind string"
RESULT = "entity string, metric string, time long, n long, mean double, ewma double"


class Average(Record):
    """The averages of a series at one of its records, or after a silence."""

    identity: ClassVar[tuple[str, ...]] = ("entity", "metric", "time")

    entity: Keyword
    metric: Keyword
    time: Instant
    n: int
    mean: Finite
    ewma: Finite


class Averages(Logic):
    """Emits at each `EVERY`-th record of a key, and `SILENCE_MS` after its last one."""

    state: ClassVar = {"n": 0, "mean": 0.0, "ewma": 0.0}

    def on_records(self, turn: Turn) -> None:
        state, value = turn.state, turn["value"]
        first = state["n"] == 0
        state["n"] += 1
        state["mean"] += (value - state["mean"]) / state["n"]
        state["ewma"] += WEIGHT * (value - state["ewma"])
        state["ewma"][first] = value[first]
        turn.timer[:] = turn.time + SILENCE_MS
        turn.emit(state, where=state["n"] % EVERY == 0)

    def on_timers(self, turn: Turn) -> None:
        turn.emit(turn.state)


class PerKey(StatefulProcessor):
    """The same for Spark: called once a key and micro-batch with the key's rows."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Called by Spark once a task."""
        self.handle = handle
        self.state = handle.getValueState("averages", "n long, mean double, ewma double, timer long")

    def handleInputRows(  # type: ignore[override]  # noqa: N802
        self,
        key: Any,
        rows: Iterator[Row],
        timerValues: Any,  # noqa: N803
    ) -> Iterator[Row]:
        """Called by Spark; rows come in no order."""
        n, mean, ewma, timer = before = self.state.get() or (0, 0.0, 0.0, 0)
        for time, value in sorted((row.ms, row.value) for row in rows):
            if timer and timer <= time:
                yield _result(key, timer, n, mean, ewma)
            ewma = ewma + WEIGHT * (value - ewma) if n else value
            n += 1
            mean += (value - mean) / n
            timer = time + SILENCE_MS
            if n % EVERY == 0:
                yield _result(key, time, n, mean, ewma)
        if before[3]:
            self.handle.deleteTimer(before[3])
        self.handle.registerTimer(timer)
        self.state.update((n, mean, ewma, timer))

    def handleExpiredTimer(  # type: ignore[override]  # noqa: N802
        self,
        key: Any,
        timerValues: Any,  # noqa: N803
        expiredTimerInfo: Any,  # noqa: N803
    ) -> Iterator[Row]:
        """Called by Spark when the watermark has passed a timer."""
        n, mean, ewma, timer = self.state.get()
        yield _result(key, timer, n, mean, ewma)
        self.state.update((n, mean, ewma, 0))

    def close(self) -> None:
        """Nothing is held open."""


def _result(key: Any, time: int, n: int, mean: float, ewma: float) -> Row:
    return Row(entity=key[0], metric=key[1], time=time, n=n, mean=mean, ewma=ewma)


def start(
    spark: SparkSession, bootstrap: str, source: str, target: str, checkpoint: Path, batch: int
) -> StreamingQuery:
    """Starts the row-mode query: JSON in, JSON out."""
    spark.conf.set("spark.sql.shuffle.partitions", "2")
    spark.conf.set("spark.sql.codegen.wholeStage", "true")
    spark.conf.set("spark.sql.codegen.factoryMode", "FALLBACK")
    spark.conf.set("spark.sql.streaming.noDataMicroBatches.enabled", "true")
    spark.conf.set("spark.sql.streaming.stateStore.providerClass", ROCKSDB)
    lines = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("subscribe", source)
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", str(batch))
        .option("kafka.max.partition.fetch.bytes", str(16 << 20))
        .option("kafka.max.poll.records", "20000")
        .load()
    )
    record = F.from_json(F.col("value").cast("string"), SCHEMA).alias("r")
    named = lines.select(record).select(
        F.timestamp_millis("r.`@timestamp`").alias("time"),
        F.col("r.`@timestamp`").alias("ms"),
        F.col("r.`host.name`").alias("entity"),
        "r.metric",
        "r.value",
    )
    averages = (
        named.withWatermark("time", "5 seconds")
        .groupBy("entity", "metric")
        .transformWithState(PerKey(), RESULT, "append", "EventTime")
    )
    return (
        averages.select(F.to_json(F.struct("*")).alias("value"))
        .writeStream.format("kafka")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("topic", target)
        .option("checkpointLocation", str(checkpoint))
        .outputMode("append")
        .queryName(target)
        .start()
    )
