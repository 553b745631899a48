"""What an experienced Spark user would write by hand: JSON from Kafka, native event-time windows, JSON to Kafka."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.streaming.query import StreamingQuery

from pipelines.contracts import topics
from tests.benchmarks.queries import Begin, Queries

SCHEMA = "`@timestamp` long, `host.name` string, metric string, value double, kind string"
PROVIDER = "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider"


def by_hand(queries: Queries, quantiles: bool) -> Begin:
    """How it is started on the raw JSON topic."""
    source = queries.topic(topics.RAW_JSON)

    def begin(target: str, work: Path, batch: int) -> StreamingQuery:
        return start(queries.spark, queries.bootstrap, source, target, work, batch, quantiles)

    return begin


def start(
    spark: SparkSession, bootstrap: str, source: str, target: str, checkpoint: Path, batch: int, quantiles: bool
) -> StreamingQuery:
    """Starts it, tuned as PLATFORM.md found best: in-memory state, two shuffle partitions, large fetches."""
    spark.conf.set("spark.sql.shuffle.partitions", "2")
    spark.conf.set("spark.sql.codegen.wholeStage", "true")
    spark.conf.set("spark.sql.codegen.factoryMode", "FALLBACK")
    spark.conf.set("spark.sql.streaming.noDataMicroBatches.enabled", "true")
    spark.conf.set("spark.sql.streaming.stateStore.providerClass", PROVIDER)
    value = F.col("value")
    statistics = [
        F.count("*").alias("count"),
        F.avg(value).alias("mean"),
        F.coalesce(F.nullif(F.stddev_samp(value), F.lit(float("nan"))), F.lit(0.0)).alias("std"),
        F.min(value).alias("min"),
        F.max(value).alias("max"),
        F.max_by(value, "time").alias("last"),
    ]
    if quantiles:
        statistics.append(F.percentile_approx(value, [0.5, 0.95, 0.99], 100).alias("p"))
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
        F.col("r.`host.name`").alias("entity"),
        "r.metric",
        "r.value",
    )
    windows = (
        named.withWatermark("time", "5 seconds")
        .groupBy(F.window("time", "10 seconds"), "entity", "metric")
        .agg(*statistics)
        .select("entity", "metric", F.unix_millis("window.start").alias("window_start"), *_names(quantiles))
    )
    return (
        windows.select(F.to_json(F.struct("*")).alias("value"))
        .writeStream.format("kafka")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("topic", target)
        .option("checkpointLocation", str(checkpoint))
        .outputMode("append")
        .queryName(f"handwritten-{quantiles}")
        .start()
    )


def _names(quantiles: bool) -> list[str]:
    return ["count", "mean", "std", "min", "max", "last", *(["p"] if quantiles else [])]
