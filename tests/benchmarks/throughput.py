"""Throughput: extractor from the columnar log, and normalizer before it, beside a hand-written job, in one run.

Each query first warms up on the same records in many small micro-batches, because the JVM compiles for a while; then it
is started anew and reads them all in micro-batches of the production size. Rate = records of all batches but the first
and the last ÷ their wall time (Spark's own `triggerExecution`). The outputs are compared window by window.
"""

from __future__ import annotations

import importlib.util
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import polars as pl
from confluent_kafka import Consumer, TopicPartition
from pyspark.sql.streaming.query import StreamingQuery
from rich.console import Console

from datagen.kafka import KafkaWriter
from deploy.artifacts import spark_jars
from deploy.embedded.services import embedded
from deploy.java import java_home
from engine import columnar
from engine.heartbeat import Heartbeat
from engine.job import Job
from engine.kafka_admin import ensure_topics
from engine.spark.query import BatchReport, Runtime, start
from engine.spark.session import end, spark_session
from pipelines import jobs, topics
from pipelines.records import Features
from pipelines.settings import Settings, load

WARM_UP = 40
SPAN_MS = 60_000
FULL, PLAIN = "handwritten", "handwritten_without_quantiles"
say = Console(stderr=True).print


def run(records: int, keys: int, kafka: str | None, state_dir: Path | None, warm_up: int = WARM_UP) -> dict[str, Any]:
    """All of it, each query warmed up by so many micro-batches; returns the figures."""
    name = f"bench{int(time.time())}."
    settings = load(**{"namespace": name, "kafka.bootstrap": kafka, "state_dir": state_dir})
    with embedded(settings, elasticsearch=False) as servers:
        settings = servers.settings(settings)
        return _measure(settings, records, keys, warm_up)


def _measure(settings: Settings, records: int, keys: int, warm_up: int) -> dict[str, Any]:
    bootstrap = settings.kafka.bootstrap or ""
    outputs = {name: {} for name in (FULL, PLAIN, *(f"warm.{n}" for n in (FULL, PLAIN, *topics.configs())))}
    wanted = {settings.topic(n): c for n, c in (topics.configs() | outputs).items()}
    ensure_topics(bootstrap, wanted, settings.kafka.partitions)
    say(f"writing {records:,} records of {keys:,} series")
    _write(settings, records, keys)
    bench = Bench(settings, records, warm_up)
    rates = {FULL: bench.handwritten(FULL, True), PLAIN: bench.handwritten(PLAIN, False)}
    with Heartbeat(bootstrap, list(jobs.normalizer(settings).source.formats)):
        rates |= {name: bench.ours(name) for name in ("normalizer", "extractor")}
    end(bench.spark)
    both = 1 / (1 / rates["normalizer"] + 1 / rates["extractor"])
    return {
        "records": records,
        "keys": keys,
        "records_per_second": {k: round(v) for k, v in rates.items()} | {"normalizer_then_extractor": round(both)},
        "ratio_to_handwritten": {
            "extractor": round(rates["extractor"] / rates[FULL], 2),
            "normalizer_then_extractor": round(both / rates[FULL], 2),
            "extractor_to_without_quantiles": round(rates["extractor"] / rates[PLAIN], 2),
        },
        "outputs": _compare(bootstrap, settings.topic(FULL), settings.topic(topics.FEATURES)),
    }


class Bench:
    """One Spark session in which the queries run one after the other, each warmed up."""

    def __init__(self, settings: Settings, records: int, warm_up: int) -> None:
        self.settings, self.records, self.warm_up = settings, records, warm_up
        self.batch = min(settings.engine.max_messages, records // 4)
        self.bootstrap = settings.kafka.bootstrap or ""
        self.work = settings.folder("bench")
        self.spark = spark_session(spark_jars(), java_home(), 2, self.work / "spark", preload=jobs.MODULES)
        self.provider = self.spark.conf.get("spark.sql.streaming.stateStore.providerClass") or ""

    def handwritten(self, name: str, quantiles: bool) -> float:
        """The hand-written job's rate."""
        job, source = _sibling("handwritten"), self.settings.topic(topics.RAW_JSON)

        def begin(target: str, batch: int) -> StreamingQuery:
            work = self.work / target
            query = job.start(self.spark, self.bootstrap, source, self.settings.topic(target), work, batch, quantiles)
            return cast(StreamingQuery, query)

        self._warm(begin(f"warm.{name}", self.records // (2 * self.warm_up)))
        return _rate(begin(name, self.batch), {}, name)

    def ours(self, name: str) -> float:
        """The rate of one of our jobs."""
        self.spark.conf.set("spark.sql.codegen.wholeStage", "false")
        self.spark.conf.set("spark.sql.streaming.noDataMicroBatches.enabled", "false")
        self.spark.conf.set("spark.sql.streaming.stateStore.providerClass", self.provider)
        job = jobs.JOBS[name](self.settings)
        (first, *_) = job.source.formats
        messages = _messages(self.bootstrap, first)
        batch = max(1, messages * self.batch // self.records)
        warm = replace(
            job, name=f"warm-{name}", output=replace(job.output, topic=self.settings.topic("warm.telemetry"))
        )
        self._warm(self._start(warm, max(1, messages // (2 * self.warm_up)), {}))
        reports: dict[int, BatchReport] = {}
        return _rate(self._start(job, batch, reports), reports, name)

    def _start(self, job: Job, batch: int, reports: dict[int, BatchReport]) -> StreamingQuery:
        runtime = Runtime(
            self.bootstrap,
            self.work / "checkpoints",
            shards=2,
            trigger="0ms",
            max_messages=batch,
            max_records=batch,
            ledger=self.settings.topic(topics.LEDGER),
            namespace=self.settings.namespace,
        )
        return start(self.spark, job, runtime, lambda r: reports.setdefault(r.batch_id, r) and None)

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


def _rate(query: StreamingQuery, reports: dict[int, BatchReport], label: str) -> float:
    query.processAllAvailable()
    progress = [p for p in query.recentProgress if p["numInputRows"] > 0]
    query.stop()
    counted = progress[1:-1]
    rows = [sum(s.records_in for s in reports[p["batchId"]].stats) if reports else p["numInputRows"] for p in counted]
    seconds = sum(p["durationMs"]["triggerExecution"] for p in counted) / 1000
    say(f"{label}: {sum(rows):,} records in {seconds:.1f} s over {len(counted)} batches: {sum(rows) / seconds:,.0f} /s")
    return sum(rows) / seconds


def _compare(bootstrap: str, handwritten: str, ours: str) -> dict[str, Any]:
    """Both outputs, the last revision of each window against the hand-written one."""
    theirs = pl.read_ndjson(b"\n".join(_values(bootstrap, handwritten)))
    schema = Features.arrow_schema()
    tables = [pl.from_arrow(columnar.decode(v, schema)[0]) for v in _values(bootstrap, ours)]
    rows = pl.concat([t for t in tables if isinstance(t, pl.DataFrame) and t.height])
    by = ["entity", "metric", "window_start"]
    rows = rows.with_columns(pl.col("entity", "metric").cast(pl.String)).sort("revision")
    mine = rows.unique(by, keep="last", maintain_order=True)
    both = mine.join(theirs, on=by, how="inner", suffix="_theirs")

    def off(name: str) -> float:
        a, b = pl.col(name), pl.col(f"{name}_theirs")
        return float(both.select(((a - b).abs() / b.abs().clip(lower_bound=1e-9)).max()).item() or 0.0)

    differences = {name: off(name) for name in ("count", "mean", "std", "min", "max", "last")}
    p95 = (pl.col("p95") - pl.col("p").list.get(1)).abs() / pl.col("p").list.get(1).abs()
    return {
        "equal": mine.height == theirs.height == both.height and max(differences.values()) < 1e-9,
        "windows": both.height,
        "only_ours": mine.height - both.height,
        "only_handwritten": theirs.height - both.height,
        "revisions": rows.height - mine.height,
        "largest_relative_difference": differences,
        "p95_relative_difference_median": float(both.select(p95.median()).item()),
    }


def _messages(bootstrap: str, topic: str) -> int:
    """How many a topic holds, markers of transactions included."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "bench"})
    partitions = consumer.list_topics(topic, 10).topics[topic].partitions
    ends = [consumer.get_watermark_offsets(TopicPartition(topic, p), 10) for p in partitions]
    consumer.close()
    return sum(high - low for low, high in ends)


def _values(bootstrap: str, topic: str) -> list[bytes]:
    """All committed messages; the end of a partition is not told where a transaction was open, so until it is quiet."""
    options = {"bootstrap.servers": bootstrap, "group.id": "bench", "enable.auto.commit": False}
    consumer = Consumer(options | {"isolation.level": "read_committed"})
    partitions = consumer.list_topics(topic, 10).topics[topic].partitions
    consumer.assign([TopicPartition(topic, p, 0) for p in partitions])
    values: list[bytes] = []
    quiet = 0
    while quiet < 3:
        messages = consumer.consume(10_000, 1.0)
        quiet = 0 if messages else quiet + 1
        values += [message.value() or b"" for message in messages if not message.error()]
    consumer.close()
    return values


def _sibling(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(f"benchmarks_{name}", Path(__file__).with_name(f"{name}.py"))
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[f"benchmarks_{name}"] = module
    spec.loader.exec_module(module)
    return module
