"""The driver: runs any choice of jobs in one Spark session; each job has its own query, checkpoint and topic."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from threading import Thread

import structlog
from confluent_kafka import KafkaException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from engine.clock import now_ms
from engine.kafka import continuation, retained
from engine.kafka.heartbeat_sender import HeartbeatSender
from engine.kafka.offsets import KafkaOffsets, Offsets, behind
from engine.kafka.permissions import check_topics
from engine.spark.checkpoint_layout import check_layout
from engine.spark.checkpoint_offsets import committed_offsets
from engine.spark.checkpoint_topics import settle, standings
from engine.spark.failure import reason, slow_start
from engine.spark.query import BatchReport, Runtime, drain, start
from engine.spark.session import StartingSpark, end, telling_of_jvm
from engine.spark.warm_up import warm_up
from engine.spark.workers import check_workers, is_local
from engine.spec.duration import duration_ms
from engine.spec.errors import NewnormalError
from engine.spec.job import Job
from pipelines.contracts import topics
from pipelines.contracts.settings import Settings
from pipelines.jobs.archive.job import ARCHIVE, ArchiveJob
from pipelines.jobs.sink.job import SinkJob
from pipelines.runtime.archived_input import ArchivedInput, InputUnknown
from pipelines.runtime.compiling import MODELS, compile_once
from pipelines.runtime.interrupts import Interrupts
from pipelines.runtime.job_metrics import JobMetrics
from pipelines.runtime.ownership import Ownership
from pipelines.runtime.program import CHAIN, Program
from pipelines.runtime.running_job import LaterJobs, RunningJob
from pipelines.runtime.servers import Check, ServerWatch, ask_elasticsearch
from pipelines.runtime.silence_watch import silence_watch
from pipelines.runtime.starting import start_spark
from pipelines.runtime.status import StatusCollector

_SLOW_SECONDS = 120.0
_STOP_SECONDS = 5.0
log = structlog.get_logger()


class Driver:
    """Runs jobs until it is stopped; a job that fails is restarted from its checkpoint a few times.

    Args:
        settings: The settings, with the servers' addresses filled in.
        jobs: Names of the program's jobs that run; ``None``: all of them.
        live_from: See `StatusCollector`; ``None``: now.
        write_again: True if jobs may start although their output is newer than their checkpoints; the output is then
            written a second time.
        take_over: See `Ownership`.
        program: Defines the jobs: the production chain, or the jobs of a user's file.
        begin: Where jobs without a checkpoint begin to read, by job; see `engine.spark.query.start`.
        starting: The JVM of Spark if it was started before; ``None``: `start` starts it.
        at_once: True if all jobs start at once; otherwise some wait for others, see `LaterJobs`.
        steady: True if heartbeats never become rare, as the run ends by itself and its end waits for them.

    Raises:
        NewnormalError: ``JOB_UNKNOWN`` if the program has no job of a name.
    """

    def __init__(
        self,
        settings: Settings,
        jobs: Sequence[str] | None = None,
        live_from: int | None = None,
        write_again: bool = False,
        take_over: bool = False,
        program: Program = CHAIN,
        begin: Mapping[str, Offsets] | None = None,
        starting: StartingSpark | None = None,
        at_once: bool = False,
        steady: bool = False,
    ) -> None:
        jobs = [name for name in program.names if program.runs(name, settings)] if jobs is None else jobs
        if unknown := [name for name in jobs if name not in program.names]:
            raise NewnormalError(
                "JOB_UNKNOWN", ", ".join(unknown), "command line", ", ".join(program.names), "nothing was started"
            )
        self.settings, self.program, self.begin = settings, program, begin or {}
        self._starting, self._at_once, self._steady, self.write_again = starting, at_once, steady, write_again
        self.names = [name for name in program.names if name in jobs]
        delay = duration_ms(settings.watermark.out_of_orderness)
        live_from = now_ms() if live_from is None else live_from
        of_news = settings.detector.emit == "context"
        self.status = StatusCollector(self.names, live_from, delay, of_news=of_news)
        self.job_metrics = JobMetrics(settings.folder("job_metrics"))
        self.runtime = runtime = Runtime(
            bootstrap=settings.kafka.bootstrap or "",
            checkpoints=settings.folder("checkpoints"),
            shards=settings.engine.shards,
            trigger=settings.engine.trigger,
            max_records=settings.engine.max_records,
            max_messages=settings.engine.max_messages,
            max_bytes=settings.engine.max_bytes,
            skip_missing=settings.engine.on_missing_offsets == "earliest",
            ledger=settings.topic(topics.LEDGER),
            owner=settings.owner,
            output=settings.engine.output,
        )
        self.archived = ArchivedInput(settings, runtime.checkpoints, self.begin)
        self.runs = {name: RunningJob() for name in self.names}
        if ARCHIVE in self.runs:
            self.runs[ARCHIVE].patience += duration_ms(settings.archive.every) / 1000
        self.slow_until, self.later, self.interrupts = 0.0, LaterJobs(), Interrupts()
        self.drained: dict[str, SinkJob | ArchiveJob] = {}
        self.spark: SparkSession | None = None
        self.heartbeats, self.resources = ExitStack(), ExitStack()
        self.ownership = Ownership(
            runtime.bootstrap, settings.owner, runtime.ledger, runtime.checkpoints, self.names, take_over
        )
        self.offsets = KafkaOffsets(runtime.bootstrap, sorted(self._inputs()))
        self.ends: Offsets = {}
        checks: dict[str, Check] = {"kafka": self._ask_kafka}
        if "sink" in self.names:
            checks["elasticsearch"] = partial(ask_elasticsearch, settings.elasticsearch.url or "")
        self.servers = ServerWatch(checks, self._back)

    def claim(self) -> None:
        """Creates the topics, becomes the owner of the jobs, and makes all checks that may refuse the start.

        Raises:
            NewnormalError: ``ALREADY_RUNNING``; ``STATE_FORMAT``, ``SHARDS_FIXED``, ``SETTINGS_FIXED``,
                ``PARTITIONS_FIXED``; ``CHECKPOINT_MISSING``, ``CHECKPOINT_BEHIND``; ``OFFSETS_MISSING``;
                ``KAFKA_UNREACHABLE``, ``KAFKA_NOT_ALLOWED``.
        """
        settings = self.settings
        self.program.prepare(settings)
        jobs = [job for name in self.names if (job := self.program.job(name, settings))]
        writes = [topic for name in self.names for topic in self.program.writes(name, settings)]
        check_topics(
            self.runtime.bootstrap,
            [*self._inputs(), self.runtime.ledger],
            [*writes, *self.program.beating(self.names, settings), *(job.dead.topic for job in jobs)],
        )
        self.resources.enter_context(self.ownership)
        check_layout(self.runtime.checkpoints, [job.name for job in jobs], self.runtime.shards, "engine.shards")
        self._check_output(jobs)
        checkpoints, reads = self.runtime.checkpoints, {name: self.program.reads(name, settings) for name in self.names}
        archived = [name for name in self.names if self.archived.may_read(name, reads[name])]
        jobs_stand, policy = standings(checkpoints, reads, archived), settings.engine.on_missing_offsets
        goes_on, ids = retained.check(self.runtime.bootstrap, checkpoints, jobs_stand, policy, retained.ACCEPTED)
        self.program.check(self.names, settings, checkpoints)
        for name in self.names:
            settle(checkpoints / name, reads[name], goes_on.get(name, {}), ids)

    def start(self) -> None:
        """Starts Spark and the jobs, but for those that `check` starts later; `claim` must have been called before.

        Raises:
            NewnormalError: ``CLUSTER_UNREACHABLE``, ``CHECKPOINT_NOT_SHARED`` or ``WORKERS_UNFIT`` if a cluster cannot
                run the jobs.
        """
        settings = self.settings
        self.resources.enter_context(self.servers)
        if MODELS in self.program.modules:
            compile_once()
        self.interrupts.defer()
        self.spark = (self._starting or start_spark(settings)).session(settings.engine.cores, self.program.modules)
        self.interrupts.defer()  # called again, as Spark has installed its own handler for Ctrl-C
        self._prepare(self.spark)
        self.interrupts.check()
        if beating := self.program.beating(self.names, settings):
            watch = None if self._at_once else silence_watch(self.settings, self.names, beating)
            heard = self.heartbeats.enter_context(watch).beat if watch else None
            may_rest = self.program.by_event_time and not self._steady
            for rhythm in self.program.rhythms(self.names, settings):
                ends = (lambda own=rhythm: own.heard_in(self.ends)) if may_rest else None
                sender = HeartbeatSender(
                    self.runtime.bootstrap, rhythm.topics, on_delivery=heard, ends=ends, grid_ms=rhythm.grid_ms
                )
                self.heartbeats.enter_context(sender)
        self.ownership.check_others()
        later = [name for name in self.names if self.program.starts_later(name) and not self._at_once]
        self.later = LaterJobs(later, time.monotonic(), self.later.held)
        for name in self.names:
            self.interrupts.check()
            if name not in {*later, *self.later.held} and not self._launch(name):
                self.later.put_off(name)

    def _prepare(self, spark: SparkSession) -> None:
        """Starts Python before the first task needs it; on a cluster, sees whether its machines can run the jobs."""
        if is_local(spark):
            warm_up(spark)
            return
        for file in self.program.files:
            spark.sparkContext.addPyFile(str(file))
        runtime = self.runtime
        places = runtime.checkpoints, runtime.bootstrap
        workers = check_workers(spark, *places, self.program.modules, self.interrupts.check)
        hosts = sorted({worker["host"] for worker in workers})
        log.info("the jobs run on a cluster", master=spark.sparkContext.master, machines=", ".join(hosts))

    def _check_output(self, jobs: Sequence[Job]) -> None:
        """Checks that the jobs' earlier output is known to their checkpoints.

        The sink needs no such check: it overwrites its documents.
        """
        outputs = {job.name: [output.topic for output in job.outputs if output != job.dead] for job in jobs}
        runtime = self.runtime
        continuation.check(
            runtime.bootstrap, runtime.owner, runtime.ledger, runtime.checkpoints, outputs, self.write_again
        )

    def _launch(self, name: str) -> bool:
        """Starts a job; False if it cannot be told now whether it begins in the archive: it is to be tried again."""
        assert self.spark is not None
        job = self.program.job(name, self.settings)
        if job is None:
            query = self._drain(self.spark, name)
        else:
            try:
                archive = self.archived.rows(self.spark, name, self.program.reads(name, self.settings))
            except InputUnknown as unknown:
                log.info("job waits", job=name, reason=str(unknown))
                return False
            runtime = replace(self.runtime, trigger=self.program.pause_ms(name, int(self.runtime.trigger)))
            query = start(self.spark, job, runtime, self._report, self.begin.get(name), archive)
        self.runs[name].started(query, committed_offsets(self.runtime.checkpoints / name) or self._first_offsets(name))
        log.info("job started", job=name, checkpoint=str(self.runtime.checkpoints / name))
        return True

    def _drain(self, spark: SparkSession, name: str) -> StreamingQuery:
        """Starts a job that does not write to Kafka."""
        if name in self.drained:
            self.drained.pop(name).close()
        reads, runtime = self.program.reads(name, self.settings), self.runtime
        if name == ARCHIVE:
            archive = self.drained[name] = ArchiveJob(self.settings, runtime, self.status.archived)
            every = duration_ms(self.settings.archive.every)
            return drain(spark, name, reads, runtime, archive.write, runtime.max_records, every)
        sink = self.drained[name] = SinkJob(self.settings, runtime, self.status.sink)
        return drain(spark, name, reads, runtime, sink.write, runtime.max_documents)

    def _report(self, report: BatchReport) -> None:
        self.status.batch(report)
        self.job_metrics.batch(report)

    @telling_of_jvm()
    def check(self) -> None:
        """Starts the jobs that start later, and failed ones when their pause is over, if Kafka answers.

        It is to be called about once a second.

        Raises:
            NewnormalError: ``JOB_FAILED`` if a job failed too often in a row; ``ALREADY_RUNNING`` if another process
                runs the job now; ``SPARK_ENDED`` if its JVM is gone.
        """
        lags = self.lags()
        self._launch_later()
        for name, run in self.runs.items():
            if run.query is None:
                continue
            if run.query.isActive:
                run.look(time.monotonic(), lags[name])
            elif self.archived.through(name, run.query):
                self._launch(name)
            elif not run.restarts.waiting:
                self._failed(name, run)
            elif run.restarts.due(time.monotonic()) and not self.servers.is_away("kafka") and self._may_start():
                self._launch(name)

    def _launch_later(self) -> None:
        """Starts the jobs that start later, once the others work."""
        others = [run for name, run in self.runs.items() if name not in self.later.names]
        if not self.later.due(others, time.monotonic()):
            return
        while self.later.names and not self.servers.is_away("kafka") and self._may_start():
            self.interrupts.check()
            if not self._launch(self.later.names[0]):
                return
            self.later.drop(self.later.names[0])

    def _may_start(self) -> bool:
        """False while another job is starting, if Python workers were slow to start lately: jobs then start in turn."""
        now = time.monotonic()
        return now > self.slow_until or not any(run.starts(now) for run in self.runs.values())

    def _failed(self, name: str, run: RunningJob) -> None:
        assert run.query is not None
        why = reason(run.query)
        if "JOB_FENCED" in why and (others := self.ownership.others()):
            raise self.ownership.running(name, others[0])
        absent, slow = self.servers.is_away("kafka"), slow_start(why)
        if not run.restarts.failed(why, time.monotonic(), excused=absent or slow):
            what = f"{name} failed {run.restarts.failures + 1} times without completing a micro-batch: {why}"
            now = "all jobs stop; the next start continues from the checkpoints"
            raise NewnormalError("JOB_FAILED", what, name, now=now)
        self.status.failed(name, why)
        pause = round(run.restarts.at - time.monotonic(), 1)
        if slow:
            self.slow_until = time.monotonic() + _SLOW_SECONDS
            log.info("a Python worker took more than 10 s to start, the job will restart", job=name, in_s=pause)
        else:
            log.warning("job failed, it will restart from its checkpoint", job=name, in_s=pause, reason=why)

    def problems(self) -> list[str]:
        """The problems that keep the pipeline from its work now, one sentence each; empty if there are none."""
        if self.spark is None:
            return ["the jobs have not started yet"]
        if away := self.servers.away():
            return [f"{server} ({server.reason})" for server in away]
        waiting = [text for job in self.drained.values() if (text := job.problem())]
        return waiting + [text for name, run in self.runs.items() if (text := run.problem(name, time.monotonic()))]

    def lags(self, without: Collection[str] = ()) -> dict[str, int | None]:
        """For each job the number of Kafka messages that it has not read yet; ``None`` if unknown, as in an outage.

        Args:
            without: Topics that are not counted.
        """
        unknown = self.servers.is_away("kafka") or not self.ends
        return {
            name: None
            if unknown or not run.read
            else behind(self.ends, {topic: offsets for topic, offsets in run.read.items() if topic not in without})
            for name, run in self.runs.items()
        }

    def finish(self, name: str) -> None:
        """Ends a job between two micro-batches, or within one that is repeated at the next start; others go on."""
        run = self.runs[name]
        run.stop()
        run.query = None
        self.later.drop(name)

    def quiesce(self) -> None:
        """Stops the heartbeats, so that the jobs can become idle; those that have not been started yet are not."""
        self.heartbeats.close()
        self.later = LaterJobs()

    @telling_of_jvm()
    def idle(self) -> bool:
        """True if all jobs that were started run, and have read and processed all messages."""
        started = [run for run in self.runs.values() if run.query]
        return bool(started) and all(run.idle() for run in started)

    def stop(self) -> None:
        """Stops the jobs, between micro-batches if possible, and then Spark.

        This takes a few seconds at most, even if a server does not answer. The next start repeats each micro-batch that
        was not completed.
        """
        self.heartbeats.close()
        self.runtime.stopping.set()
        for drained in self.drained.values():
            drained.stop()
        stopping = [Thread(target=run.stop, daemon=True) for run in self.runs.values() if run.query]
        deadline = time.monotonic() + (1.0 if self.servers.away() else _STOP_SECONDS)
        for thread in stopping:
            thread.start()
        for thread in stopping:
            thread.join(max(0.0, deadline - time.monotonic()))
        for drained in self.drained.values():
            drained.close()
        self.job_metrics.flush()
        if self.spark:
            end(self.spark, at_once=any(thread.is_alive() for thread in stopping))
        self.resources.close()

    def _inputs(self) -> set[str]:
        """The full names of the topics that the jobs read."""
        return {topic for name in self.names for topic in self.program.reads(name, self.settings)}

    def _first_offsets(self, name: str) -> dict[str, dict[str, int]]:
        """Where a job without a checkpoint begins to read, in the form of Spark; empty if Kafka does not answer."""
        topics = set(self.program.reads(name, self.settings))
        try:
            first = {**self.offsets.starts(), **self.begin.get(name, {})}
        except (KafkaException, TimeoutError):
            return {}
        offsets: dict[str, dict[str, int]] = {}
        for (topic, partition), offset in first.items():
            if topic in topics:
                offsets.setdefault(topic, {})[str(partition)] = offset
        return offsets

    def _back(self, server: str) -> None:
        if server == "kafka":
            for writer in list(self.runtime.writers.values()):
                writer.renew()

    def _ask_kafka(self) -> None:
        try:
            self.ends = self.offsets.ends()
        except KafkaException as error:
            raise TimeoutError(error.args[0].str()) from None
