"""Throughput: extractor from the columnar log, and normalizer before it, beside a hand-written job, in one run.

Each query reads the same records; its first batches warm it up and are not counted. Rate = records of the counted
batches ÷ their wall time (Spark's own `triggerExecution`). The outputs are compared window by window.
"""

from __future__ import annotations

import importlib.util
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from confluent_kafka import Consumer, TopicPartition
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from rich.console import Console

from datagen.kafka import KafkaWriter
from deploy.artifacts import spark_jars
from deploy.embedded.services import embedded
from deploy.java import java_home
from engine import columnar
from engine.kafka_admin import ensure_topics
from engine.spark.query import BatchReport, Runtime, start
from engine.spark.session import spark_session
from pipelines import jobs, topics
from pipelines.records import Features
from pipelines.settings import Settings, load

BATCHES, WARM = 10, 4
SPAN_MS = 60_000
say = Console(stderr=True).print


def run(records: int, keys: int, kafka: str | None, state_dir: Path | None) -> dict[str, Any]:
    """All of it; returns the figures."""
    name = f"bench{int(time.time())}."
    settings = load(**{"namespace": name, "kafka.bootstrap": kafka, "state_dir": state_dir})
    with embedded(settings, elasticsearch=False) as servers:
        settings = servers.settings(settings)
        return _measure(settings, records, keys)


def _measure(settings: Settings, records: int, keys: int) -> dict[str, Any]:
    bootstrap, batch = settings.kafka.bootstrap or "", records // BATCHES
    plain, full = settings.topic("handwritten.plain"), settings.topic("handwritten.full")
    wanted = {settings.topic(n): c for n, c in topics.configs().items()}
    ensure_topics(bootstrap, wanted | {plain: {}, full: {}}, settings.kafka.partitions)
    say(f"writing {records:,} records of {keys:,} series")
    _write(settings, records, keys)
    work = settings.state / "bench" / settings.namespace.rstrip(".")
    spark = spark_session(spark_jars(), java_home(), 2, work / "spark", quick_start=False)
    provider = spark.conf.get("spark.sql.streaming.stateStore.providerClass")
    runtime = Runtime(
        bootstrap,
        work / "checkpoints",
        shards=2,
        trigger="0ms",
        max_messages=batch,
        ledger=settings.topic(topics.LEDGER),
        namespace=settings.namespace,
    )
    rates: dict[str, float] = {}
    handwritten = _sibling("handwritten")
    for label, target, quantiles in (("handwritten", full, True), ("handwritten_without_quantiles", plain, False)):
        source = settings.topic(topics.RAW_JSON)
        query = handwritten.start(spark, bootstrap, source, target, work / label, batch, quantiles)
        rates[label] = _rate(query, {}, label)
    spark.conf.set("spark.sql.codegen.wholeStage", "false")
    spark.conf.set("spark.sql.streaming.stateStore.providerClass", provider or "")
    rates["normalizer"] = _ours(spark, settings, runtime, "normalizer")
    messages = _messages(bootstrap, settings.topic(topics.TELEMETRY))
    columnar_runtime = replace(runtime, max_records=max(1, messages // BATCHES))
    rates["extractor"] = _ours(spark, settings, columnar_runtime, "extractor")
    spark.stop()
    both = 1 / (1 / rates["normalizer"] + 1 / rates["extractor"])
    base = rates["handwritten"]
    return {
        "records": records,
        "keys": keys,
        "records_per_second": {k: round(v) for k, v in rates.items()} | {"normalizer_then_extractor": round(both)},
        "ratio_to_handwritten": {
            "extractor": round(rates["extractor"] / base, 2),
            "normalizer_then_extractor": round(both / base, 2),
            "extractor_to_without_quantiles": round(rates["extractor"] / rates["handwritten_without_quantiles"], 2),
        },
        "outputs": _compare(bootstrap, full, settings.topic(topics.FEATURES)),
    }


def _write(settings: Settings, records: int, keys: int) -> None:
    """Samples in event-time order over one minute, ended by one record a partition that lets the watermark pass."""
    rng, chunk = np.random.default_rng(7), 100_000
    begin = (int(time.time() * 1000) - SPAN_MS * 2) // 10_000 * 10_000
    with KafkaWriter(settings.kafka.bootstrap or "") as writer:
        for first in range(0, records, chunk):
            n = min(chunk, records - first)
            series = (np.arange(first, first + n) * 7919) % keys
            instants = begin + (np.arange(first, first + n) * SPAN_MS) // records
            _send(writer, settings, series // 10, series % 10, instants, rng.normal(100, 15, n))
        ends = np.full(4_000, begin + SPAN_MS + 25_000)
        _send(writer, settings, np.arange(4_000) % (keys // 10), np.zeros(4_000, int), ends, np.zeros(4_000))


def _send(writer: KafkaWriter, settings: Settings, entity: Any, metric: Any, instants: Any, values: Any) -> None:
    frame = pl.DataFrame({"@timestamp": instants, "e": entity, "m": metric, "value": values})
    frame = frame.select(
        "@timestamp",
        (pl.lit("host-") + pl.col("e").cast(pl.String)).alias("host.name"),
        (pl.lit("metric.") + pl.col("m").cast(pl.String)).alias("metric"),
        "value",
        pl.lit("gauge").alias("kind"),
    )
    lines = frame.select(pl.struct(pl.all()).struct.json_encode()).to_series().to_list()
    writer.write(settings.topic(topics.RAW_JSON), lines, frame["host.name"].to_list())


def _ours(spark: SparkSession, settings: Settings, runtime: Runtime, name: str) -> float:
    reports: dict[int, BatchReport] = {}
    query = start(spark, jobs.JOBS[name](settings), runtime, lambda r: reports.setdefault(r.batch_id, r) and None)
    return _rate(query, reports, name)


def _rate(query: StreamingQuery, reports: dict[int, BatchReport], label: str) -> float:
    query.processAllAvailable()
    progress = [p for p in query.recentProgress if p["numInputRows"] > 0]
    query.stop()
    counted = progress[WARM:-1]
    rows = [sum(s.records_in for s in reports[p["batchId"]].stats) if reports else p["numInputRows"] for p in counted]
    seconds = sum(p["durationMs"]["triggerExecution"] for p in counted) / 1000
    say(f"{label}: {sum(rows):,} records in {seconds:.1f} s over {len(counted)} batches: {sum(rows) / seconds:,.0f} /s")
    return sum(rows) / seconds


def _compare(bootstrap: str, handwritten: str, ours: str) -> dict[str, Any]:
    """Both outputs, window by window."""
    theirs = pl.read_ndjson(b"\n".join(_values(bootstrap, handwritten)))
    schema = Features.arrow_schema()
    tables = [pl.from_arrow(columnar.decode(v, schema)[0]) for v in _values(bootstrap, ours)]
    mine = pl.concat([t for t in tables if isinstance(t, pl.DataFrame) and t.height]).with_columns(
        pl.col("entity", "metric").cast(pl.String)
    )
    both = mine.join(theirs, on=["entity", "metric", "window_start"], how="inner", suffix="_theirs")

    def off(name: str) -> float:
        a, b = pl.col(name), pl.col(f"{name}_theirs")
        return float(both.select(((a - b).abs() / b.abs().clip(lower_bound=1e-9)).max()).item() or 0.0)

    p95 = (pl.col("p95") - pl.col("p").list.get(1)).abs() / pl.col("p").list.get(1).abs()
    return {
        "windows": both.height,
        "only_ours": mine.height - both.height,
        "only_handwritten": theirs.height - both.height,
        "largest_relative_difference": {n: off(n) for n in ("count", "mean", "std", "min", "max", "last")},
        "p95_relative_difference_median": float(both.select(p95.median()).item()),
    }


def _values(bootstrap: str, topic: str) -> list[bytes]:
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "bench", "enable.auto.commit": False, "enable.partition.eof": True}
    )
    partitions = consumer.list_topics(topic, 10).topics[topic].partitions
    consumer.assign([TopicPartition(topic, p, 0) for p in partitions])
    values, open_partitions = [], len(partitions)
    while open_partitions:
        for message in consumer.consume(10_000, 1.0):
            if message.error():
                open_partitions -= 1
            else:
                values.append(message.value() or b"")
    consumer.close()
    return values


def _messages(bootstrap: str, topic: str) -> int:
    return len(_values(bootstrap, topic))


def _sibling(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(f"benchmarks_{name}", Path(__file__).with_name(f"{name}.py"))
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[f"benchmarks_{name}"] = module
    spec.loader.exec_module(module)
    return module
