"""What one micro-batch costs: CPU and wall time by part, of all jobs of the chain in one driver, warm.

Two loads: none (heartbeats only), and a little one. CPU time of the JVM is told apart by its threads, that of Python by
its processes; servers and load are processes of their own and are not counted. Wall times are Spark's own.
"""

from __future__ import annotations

import re
import statistics
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
from pyspark import SparkContext
from pyspark.sql.streaming.query import StreamingQuery

from deploy.embedded.services import embedded
from engine.kafka.heartbeat_sender import QUIET_SECONDS
from engine.spec.duration import END_OF_TIME
from pipelines.contracts import topics
from pipelines.contracts.settings import Settings, load
from pipelines.runtime.driver import Driver
from tests.benchmarks.latency import LOAD

KEYS = 100
THREADS = {
    "planning": "stream execution thread|offset|micro-batch|execution-thread|batch-write",
    "tasks": "Executor task launch|stdout writer|Python|python",
    "scheduling": "dag-scheduler|dispatcher|task-|context-cleaner|element-tracking|spark-listener|shuffle",
    "state store": "state-store|rocksdb|StateStore",
    "kafka": "kafka",
    "calls of the driver": "Thread-|py4j|pool",
}
"""Names of Java's threads by what they do; what is left belongs to threads that have ended, and to the JVM itself."""
OWN = {"compiling": ("C1 Compiler", "C2 Compiler", "Sweeper"), "garbage": ("GC ", "G1 ", "ParGC", "VM Thread")}
"""Beginnings of the names of the JVM's own threads."""
WALL = ("latestOffset", "getBatch", "queryPlanning", "walCommit", "addBatch", "commitOffsets", "triggerExecution")
"""Parts of a micro-batch in Spark's progress."""


@dataclass(frozen=True)
class Clock:
    """CPU seconds that were used until now.

    Attributes:
        parts: By part: threads of the JVM, Python workers, the driver.
        planning: Of the JVM's thread that plans and waits, by job.
        batches: Number of the latest micro-batch by job.
    """

    parts: Mapping[str, float]
    planning: Mapping[str, float]
    batches: Mapping[str, int]

    @classmethod
    def read(cls, driver: Driver) -> Clock:
        """Reads all of them."""
        threads, planning = defaultdict[str, float](float), defaultdict[str, float](float)
        for name, seconds in java_threads():
            part = next((part for part, names in THREADS.items() if re.search(names, name)), None)
            if part:
                threads[part] += seconds
            if job := re.match(r"stream execution thread for (\S+)", name):
                planning[job[1]] += seconds
        java, workers = processes()
        threads |= java.own
        parts = {f"JVM: {part}": seconds for part, seconds in threads.items()}
        parts["JVM: others"] = java.all - sum(threads.values())
        parts["Python workers"] = workers
        parts["driver"] = _seconds(psutil.Process())
        last = {name: run.query.lastProgress for name, run in driver.runs.items() if run.query}
        return cls(parts, planning, {name: each["batchId"] for name, each in last.items() if each})


def java_threads() -> list[tuple[str, float]]:
    """Name and CPU seconds of each thread of the JVM that lives."""
    jvm: Any = SparkContext._jvm
    bean = jvm.java.lang.management.ManagementFactory.getThreadMXBean()
    infos = bean.getThreadInfo(bean.getAllThreadIds())
    return [(info.getThreadName(), bean.getThreadCpuTime(info.getThreadId()) / 1e9) for info in infos if info]


@dataclass(frozen=True)
class JavaClock:
    """CPU seconds of the JVM: of all threads, and of its own by what they do."""

    all: float
    own: Mapping[str, float]

    @classmethod
    def read(cls, process: psutil.Process) -> JavaClock:
        """Reads them."""
        own = dict.fromkeys(OWN, 0.0)
        for thread in process.threads():
            with suppress(OSError):
                name = Path(f"/proc/{process.pid}/task/{thread.id}/comm").read_text()
                if part := next((part for part, begins in OWN.items() if name.startswith(begins)), None):
                    own[part] += thread.user_time + thread.system_time
        return cls(_seconds(process), own)


def _seconds(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


def processes() -> tuple[JavaClock, float]:
    """CPU seconds of Spark's JVM, and of all its Python workers together."""
    gateway: Any = SparkContext._gateway
    jvm, workers = psutil.Process(gateway.proc.pid), 0.0
    for process in jvm.children(recursive=True):
        with suppress(psutil.Error):  # it has ended meanwhile
            workers += _seconds(process)
    return JavaClock.read(jvm), workers


def run(seconds: int, warm: int, rate: int, state_dir: Path | None) -> dict[str, Any]:
    """Measures; returns the figures.

    Args:
        seconds: Length of each measured part.
        warm: Seconds under load before.
        rate: Records a second of the little load.
        state_dir: Folder of the servers.
    """
    settings = load(**{"namespace": f"microbatch{int(time.time())}.", "state_dir": state_dir})
    with embedded(settings) as servers:
        settings = servers.settings(settings)
        driver = Driver(settings, live_from=END_OF_TIME)
        driver.claim()
        driver.start()
        try:
            loads = {"a little load": rate, "no load": 0}
            load_process = start_load(settings, rate, warm + seconds + 30)
            watched(driver, warm)
            figures = {"a little load": measured(driver, seconds)}
            load_process.kill()
            load_process.wait()
            watched(driver, QUIET_SECONDS + 60)
            figures["no load"] = measured(driver, seconds)
        finally:
            driver.stop()
    return {"records_per_second": loads, "seconds": seconds, **figures}


def start_load(settings: Settings, rate: int, seconds: int) -> subprocess.Popen[bytes]:
    """Starts the process that sends samples."""
    arguments = [settings.kafka.bootstrap or "", settings.topic(topics.RAW_JSON), str(rate), str(seconds), str(KEYS)]
    return subprocess.Popen([sys.executable, "-c", LOAD, *arguments], stdout=subprocess.DEVNULL)


def watched(driver: Driver, seconds: float) -> None:
    """Lets the pipeline work for a while."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        driver.check()
        time.sleep(0.5)


def measured(driver: Driver, seconds: float) -> dict[str, Any]:
    """CPU and wall time of the micro-batches of some time."""
    before, began = Clock.read(driver), time.monotonic()
    watched(driver, seconds)
    after, took = Clock.read(driver), time.monotonic() - began
    number = {job: last - before.batches.get(job, last) for job, last in after.batches.items()}
    total = max(sum(number.values()), 1)
    used = {part: seconds - before.parts.get(part, 0.0) for part, seconds in after.parts.items()}
    return {
        "cores": round(sum(used.values()) / took, 3),
        "micro_batches_per_second": round(total / took, 2),
        "cpu_ms_per_micro_batch": {part: round(1000 * used[part] / total, 1) for part in sorted(used)}
        | {"all": round(1000 * sum(used.values()) / total, 1)},
        "jobs": {
            job: {
                "micro_batches": batches,
                "planning_cpu_ms": round(1000 * (after.planning[job] - before.planning[job]) / batches, 1),
                "wall_ms": wall(driver.runs[job].query, batches),
            }
            for job, batches in number.items()
            if batches
        },
    }


def wall(query: StreamingQuery | None, number: int) -> dict[str, float]:
    """The median of each part of the last micro-batches of a query."""
    last = [each["durationMs"] for each in list(query.recentProgress)[-number:]] if query else []
    return {part: round(statistics.median(each.get(part, 0) for each in last), 1) for part in WALL if last}
