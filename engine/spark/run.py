"""Runs jobs from Python: ``engine.run(job, kafka="localhost:9092", state="state")``, also under ``spark-submit``.

This is the plain way to run jobs in a Spark of one's own. `newnormal run FILE` does more: it starts servers, shows a
live view, and restarts failed jobs.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import structlog
from pyspark.sql import SparkSession

from engine.kafka import continuation, retained
from engine.kafka.admin import ensure_topics
from engine.kafka.binding import beating, bound, make_topics
from engine.kafka.exactly_once import LEDGER_TOPIC
from engine.kafka.heartbeat_sender import HeartbeatSender
from engine.spark.checkpoint_layout import check_definitions, check_layout
from engine.spark.checkpoint_lock import NO_NAMESPACE, taken
from engine.spark.checkpoint_place import checkpoint_place
from engine.spark.checkpoint_topics import settle, standings
from engine.spark.failure import reason, slow_start
from engine.spark.module_path import share_module_path
from engine.spark.query import Listener, Runtime, start
from engine.spark.session import NEEDED, end, is_submitted, spark_session, submitted_session
from engine.spark.workers import check_workers
from engine.spec.errors import NewnormalError
from engine.spec.job import Job

_LOOK_SECONDS = 1.0
_SLOW_STARTS = 5
_ACCEPTED = (
    "another name for the job, whose topic and state begin anew; or `newnormal run FILE`, which may leave them out"
)
log = structlog.get_logger()


def run(
    *jobs: Job,
    kafka: str,
    state: str | Path,
    jars: Sequence[Path] = (),
    shards: int = 2,
    partitions: int = 4,
    replication: int = 1,
    until: Callable[[], bool] = lambda: False,
    listener: Listener | None = None,
) -> None:
    """Runs jobs until Ctrl-C, or until a condition holds; the next start goes on where this one ended.

    Args:
        jobs: The jobs, each with a name of its own.
        kafka: ``host:port`` of a broker.
        state: Directory of the checkpoints, as for `newnormal run`; on a cluster one that all machines see.
        jars: Spark's Kafka connector, if this call starts Spark. An active session, or ``spark-submit``, has the
            connector from ``--jars`` or ``--packages``.
        shards: Number of parallel parts of each job; fixed when its checkpoint is created.
        partitions: Number of partitions of created topics.
        replication: Number of replicas of created topics.
        until: Condition that is checked every second; true ends the jobs.
        listener: Function that is called with the report of each micro-batch.

    Raises:
        NewnormalError: ``JOB_TWICE`` if two jobs have one name; ``ALREADY_RUNNING`` if another process runs one of
            them, by this function or by `newnormal run`; ``SHARDS_FIXED``, ``JOB_CHANGED`` or ``STATE_FORMAT`` if a
            checkpoint was made with something else; ``KAFKA_UNREACHABLE``; ``CHECKPOINT_MISSING`` if a job has written
            before and its checkpoint is gone; ``OFFSETS_MISSING`` if Kafka no longer has what one must read next;
            ``QUERY_FAILED`` if a job fails; ``CHECKPOINT_PLACE`` if the state is to lie at an address without an
            authority or a path; ``CLUSTER_UNREACHABLE``, ``CHECKPOINT_NOT_SHARED`` or ``WORKERS_UNFIT`` if a cluster
            cannot run the jobs.
    """
    names = [job.name for job in jobs]
    if doubled := {name for name in names if names.count(name) > 1}:
        raise NewnormalError(
            "JOB_TWICE", ", ".join(sorted(doubled)), "run()", "a name of its own for each", "not started"
        )
    state = checkpoint_place(state, "state")
    runtime = Runtime(kafka, state / "checkpoints" / NO_NAMESPACE, shards)
    with taken(runtime.checkpoints, names):
        check_layout(runtime.checkpoints, names, shards, "shards")
        check_definitions(runtime.checkpoints, jobs)
        make_topics(kafka, jobs, partitions, replication)
        ensure_topics(kafka, {LEDGER_TOPIC: {}}, 1, replication)
        outputs = {job.name: [output.topic for output in job.outputs if output != job.dead] for job in jobs}
        continuation.check(kafka, "", LEDGER_TOPIC, runtime.checkpoints, outputs, False)
        stand = standings(runtime.checkpoints, {job.name: job.topics for job in jobs})
        goes_on, ids = retained.check(kafka, runtime.checkpoints, stand, "fail", _ACCEPTED)
        for job in jobs:
            settle(runtime.checkpoints / job.name, job.topics, goes_on.get(job.name, {}), ids)
        ready = [bound(job, kafka) for job in jobs]
        beats = HeartbeatSender(kafka, sorted({topic for job in ready for topic in beating(job)}))
        with _session(jars, state, shards * len(jobs)) as spark, beats:
            check_workers(spark, runtime.checkpoints, kafka)
            try:
                _run(spark, ready, runtime, until, listener)
            finally:
                runtime.stopping.set()
                for query in spark.streams.active:
                    if query.name in names:
                        query.stop()


def _run(
    spark: SparkSession, jobs: Sequence[Job], runtime: Runtime, until: Callable[[], bool], listener: Listener | None
) -> None:
    queries = {job.name: start(spark, job, runtime, listener) for job in jobs}
    slow = dict.fromkeys(queries, 0)
    while not until():
        time.sleep(_LOOK_SECONDS)
        for job in jobs:
            if queries[job.name].isActive:
                continue
            why = reason(queries[job.name])
            slow[job.name] += 1
            if not slow_start(why) or slow[job.name] > _SLOW_STARTS:
                now = "the jobs have ended; a new start goes on from their checkpoints"
                raise NewnormalError("QUERY_FAILED", why, job.name, now=now)
            log.info("a Python worker took more than 10 s to start, the job starts again", job=job.name)
            queries[job.name] = start(spark, job, runtime, listener)


@contextmanager
def _session(jars: Sequence[Path], state: Path, cores: int) -> Iterator[SparkSession]:
    """The active session; otherwise that of ``spark-submit``; otherwise a local one of this process.

    A session that is created here ends with the block.
    """
    active = SparkSession.getActiveSession()
    if active is not None:
        spark, stop = active, None
    elif is_submitted():
        spark = submitted_session()
        stop = spark.stop
    else:
        spark = _local(jars, state, cores)
        stop = partial(end, spark)
    for name, value in NEEDED.items():
        spark.conf.set(name, value)
    try:
        if str(spark.conf.get("spark.speculation", "false")).lower() == "true":
            what = "attempts of a task that run beside each other would fence each other's output"
            raise NewnormalError("SETTING_INVALID", what, "spark.speculation", "false", "nothing was started")
        yield spark
    finally:
        if stop is not None:
            stop()


def _local(jars: Sequence[Path], state: Path, cores: int) -> SparkSession:
    """A local session, whose Python workers find the same modules as this process."""
    share_module_path()
    return spark_session(jars, None, max(2, cores), state / "spark", log=state / "logs" / "spark.log")
