"""One driver for any choice of jobs: each its own query, checkpoint and topic, in one Spark session."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from typing import Any

import structlog
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from deploy.artifacts import spark_jars
from deploy.java import java_home
from engine import continuation
from engine.errors import NewnormalError
from engine.heartbeat import Heartbeat
from engine.kafka_admin import ensure_topics
from engine.spark.query import BatchReport, Runtime, drain, start
from engine.spark.session import end, spark_session
from engine.time import duration_ms
from pipelines import fingerprint, topics
from pipelines.board import Board
from pipelines.jobs import FROM_AGENTS, JOBS, MODULES
from pipelines.measured import Measurements
from pipelines.settings import Settings
from pipelines.sink.job import SinkJob

ALL = (*JOBS, "sink")
_RESTARTS = 5
_CALM_SECONDS = 60.0
STATE_FORMAT = 3
"""Raised when state of older checkpoints cannot be read any more."""
log = structlog.get_logger()


class Driver:
    """Runs jobs until it is stopped; a job that fails is started again from its checkpoint, a few times.

    Args:
        settings: The settings, with the servers' addresses filled in.
        jobs: Names out of `ALL`.
        live_from: See `Board`.
        write_again: Whether output that the checkpoints do not know of may be written a second time.

    Raises:
        NewnormalError: ``JOB_UNKNOWN``; ``KAFKA_UNREACHABLE``.
    """

    def __init__(
        self,
        settings: Settings,
        jobs: Sequence[str] = ALL,
        live_from: int | None = None,
        write_again: bool = False,
    ) -> None:
        unknown = [name for name in jobs if name not in ALL]
        if unknown:
            raise NewnormalError(
                "JOB_UNKNOWN", ", ".join(unknown), "command line", ", ".join(ALL), "nothing was started"
            )
        self.settings, self.names = settings, [name for name in ALL if name in jobs]
        delay = duration_ms(settings.watermark.out_of_orderness)
        self.board = Board(self.names, live_from if live_from is not None else int(time.time() * 1000), delay)
        self.measurements = Measurements(settings.folder("measured"))
        self.runtime = Runtime(
            bootstrap=settings.kafka.bootstrap or "",
            checkpoints=settings.folder("checkpoints"),
            shards=settings.engine.shards,
            trigger=settings.engine.trigger,
            max_records=settings.engine.max_records,
            max_messages=settings.engine.max_messages,
            ledger=settings.topic(topics.LEDGER),
            namespace=settings.namespace,
        )
        self.write_again = write_again
        self.queries: dict[str, StreamingQuery] = {}
        self.failures: dict[str, list[float]] = {name: [] for name in self.names}
        self.sink: SinkJob | None = None
        self.spark: SparkSession | None = None
        self.resources = ExitStack()

    def start(self) -> None:
        """Makes the topics, starts Spark and the jobs."""
        settings = self.settings
        wanted = {settings.topic(name): config for name, config in topics.configs().items()}
        ensure_topics(self.runtime.bootstrap, wanted, settings.kafka.partitions, settings.kafka.replication)
        self._check_layout()
        self._check_output()
        fingerprint.check_partitions(settings, self.names)
        fingerprint.check(settings, self.runtime.checkpoints, self.names)
        self.spark = spark_session(
            spark_jars(),
            java_home(),
            settings.engine.cores,
            settings.state / "spark",
            settings.engine.driver_memory,
            log=settings.state / "logs" / "spark.log",
            preload=MODULES,
        )
        beating = [topic for name in FROM_AGENTS if name in self.names for topic in JOBS[name](settings).topics]
        if {"detector", "log_detector"} & set(self.names):
            beating += [settings.topic(name) for name in (topics.RULES, topics.LABELS)]
        if beating:
            self.resources.enter_context(Heartbeat(self.runtime.bootstrap, beating))
        for name in self.names:
            self._launch(name)

    def _check_output(self) -> None:
        """What the jobs wrote before must be known to their checkpoints; the sink's output is overwritten anyway."""
        jobs = [JOBS[name](self.settings) for name in self.names if name in JOBS]
        outputs = {job.name: [some.topic for some in (job.output, job.late) if some] for job in jobs}
        runtime = self.runtime
        continuation.check(
            runtime.bootstrap, runtime.namespace, runtime.ledger, runtime.checkpoints, outputs, self.write_again
        )

    def _check_layout(self) -> None:
        """Shards are fixed when a checkpoint is made: keys would otherwise change shard and lose their state."""
        mark = self.runtime.checkpoints / "layout.json"
        layout = {"shards": self.runtime.shards, "format": STATE_FORMAT}
        if not mark.exists():
            mark.parent.mkdir(parents=True, exist_ok=True)
            mark.write_text(json.dumps(layout))
            return
        kept = json.loads(mark.read_text())
        if kept.get("format") != STATE_FORMAT:
            what = f"the checkpoints are of state format {kept.get('format', 1)}, this version writes {STATE_FORMAT}"
            now = "nothing was started; a new namespace begins anew from its own topics"
            raise NewnormalError("STATE_FORMAT", what, str(mark.parent), str(STATE_FORMAT), now)
        if kept != layout:
            what = f"engine.shards = {layout['shards']}, but the checkpoints hold {kept['shards']}"
            raise NewnormalError("SHARDS_FIXED", what, str(mark), str(kept["shards"]), "nothing was started")

    def _launch(self, name: str) -> None:
        assert self.spark is not None
        if name == "sink":
            if self.sink:
                self.sink.close()
            self.sink = SinkJob(self.settings, self.runtime, self.board.sink)
            topic = self.settings.topic(topics.NOVELTIES)
            self.queries[name] = drain(self.spark, name, topic, self.runtime, self.sink.write)
        else:
            self.queries[name] = start(self.spark, JOBS[name](self.settings), self.runtime, self._report)
        log.info("job runs", job=name, checkpoint=str(self.runtime.checkpoints / name))

    def _report(self, report: BatchReport) -> None:
        self.board.batch(report)
        self.measurements.batch(report)

    def check(self) -> None:
        """Starts failed jobs again; called every second or so.

        Raises:
            NewnormalError: ``JOB_FAILED`` if a job fails again and again.
        """
        for name, query in list(self.queries.items()):
            if query.isActive:
                continue
            reason = _reason(query)
            now = time.monotonic()
            recent = [at for at in self.failures[name] if at > now - _CALM_SECONDS]
            self.failures[name] = [*recent, now]
            if len(recent) >= _RESTARTS:
                what = f"{name} failed {len(recent) + 1} times within {_CALM_SECONDS:.0f} s: {reason}"
                raise NewnormalError(
                    "JOB_FAILED", what, name, now="all jobs stop; a new start goes on from the checkpoints"
                )
            log.warning("job failed, started again from its checkpoint", job=name, reason=reason)
            self.board.failed(name, reason)
            self._launch(name)

    def lags(self) -> dict[str, int | None]:
        """Kafka messages that each job has not read yet, as of its last micro-batch."""
        return {name: _lag(query) for name, query in self.queries.items()}

    def quiesce(self) -> None:
        """Sends no more heartbeats, so that the jobs can come to rest."""
        self.resources.close()

    def idle(self) -> bool:
        """Whether no job has anything left to read."""
        return all(query.isActive and not _busy(query) for query in self.queries.values())

    def stop(self) -> None:
        """Stops the jobs between micro-batches where possible, then Spark."""
        self.resources.close()
        if self.sink:
            self.sink.stop()
        for query in self.queries.values():
            with suppress(Exception):
                query.stop()
        if self.sink:
            self.sink.close()
        self.measurements.flush()
        if self.spark:
            end(self.spark)


def _busy(query: StreamingQuery) -> bool:
    status: dict[str, Any] = query.status
    return bool(status["isDataAvailable"] or status["isTriggerActive"])


def _lag(query: StreamingQuery) -> int | None:
    progress = query.lastProgress
    if progress is None:
        return None
    source = progress["sources"][0]
    latest, end = source.get("latestOffset"), source.get("endOffset")
    return _offsets(latest) - _offsets(end) if latest and end else 0


def _offsets(by_topic: Any) -> int:
    parsed = (json.loads(by_topic) if isinstance(by_topic, str) else by_topic) or {}
    return sum(offset for partitions in parsed.values() for offset in (partitions or {}).values())


def _reason(query: StreamingQuery) -> str:
    lines = [line for line in str(query.exception() or "stopped").splitlines() if line.strip()]
    telling = [line for line in lines if "Error" in line or "Exception" in line]
    return (telling or lines or ["stopped"])[-1].strip()[:300]
