"""How long a savepoint takes while jobs run, and how long a killed driver takes to its first new result.

``newnormal bench savepoints`` runs the extractor and the detector on an embedded Kafka of its own.
One thread feeds a window of all series after the other, as fast as the jobs take them in.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from confluent_kafka import Producer

from deploy.embedded.services import embedded
from engine.columns.partitioning import slots
from engine.formats import columnar
from engine.kafka.admin import ensure_topics
from engine.kafka.offsets import KafkaOffsets
from engine.spark.checkpoint_offsets import last_committed
from pipelines.contracts import topics
from pipelines.contracts.records import Telemetry
from pipelines.contracts.settings import Settings, load
from tests.benchmarks.replay import jobs_on, variables

SIZE, SAMPLES, ROWS = 10_000, 2, 16_384
JOBS = ("extractor", "detector")
LEARNED = 3
"""So many windows of all series are judged before anything is measured."""


class Feed:
    """Sends windows of all series to `telemetry`, each when the detector has judged all but a few of those before.

    Args:
        settings: The pipeline's.
        series: Their number, ten of each machine.
        judged: Tells how many verdicts there are.
        ahead: Most windows that are sent and not judged when the next is sent.
    """

    def __init__(self, settings: Settings, series: int, judged: Callable[[], int], ahead: int = 2) -> None:
        self.settings, self.series, self.judged, self.ahead = settings, series, judged, ahead
        self.stopped = threading.Event()
        self.producer = Producer({"bootstrap.servers": settings.kafka.bootstrap, "message.max.bytes": 15_000_000})
        self.start = (int(time.time() * 1000) // SIZE - 60) * SIZE
        self.entity = pa.array([f"host-{k // 10}" for k in range(series)])
        self.metric = pa.array([f"m{k % 10}" for k in range(series)])
        self.partitions = settings.kafka.partitions
        self.where = slots(pa.chunked_array([self.entity]), self.partitions)
        self.rng, self.sent = np.random.default_rng(0), 0

    def run(self) -> None:
        """Feeds until it is stopped."""
        while not self.stopped.is_set():
            if self.judged() >= (self.sent - self.ahead) * self.series:
                self._window()
            else:
                self.stopped.wait(0.2)

    def values(self) -> np.ndarray:
        """The values of one sample of each series, shape (series,)."""
        return self.rng.normal(50, 3, self.series)

    def _window(self) -> None:
        schema = Telemetry.arrow_schema()
        for sample in range(SAMPLES):
            at = self.start + self.sent * SIZE + sample * SIZE // SAMPLES
            columns = {
                "time": pa.array(np.full(self.series, at)), "entity": self.entity, "metric": self.metric,
                "value": pa.array(self.values()), "kind": pa.array(["gauge"] * self.series),
            }  # fmt: skip
            table = pa.table({name: columns[name].cast(schema.field(name).type) for name in schema.names}, schema)
            for partition in range(self.partitions):
                part = table.filter(pa.array(self.where == partition))
                for first in range(0, part.num_rows, ROWS):
                    value = columnar.encode(part.slice(first, ROWS), at - SIZE // 2)
                    self.producer.produce(self.settings.topic(topics.TELEMETRY), value, partition=partition)
        self.producer.flush(60)
        self.sent += 1


def judged(settings: Settings) -> int:
    """The number of committed messages in `novelties`."""
    return sum(KafkaOffsets(settings.kafka.bootstrap or "", [settings.topic(topics.NOVELTIES)]).ends().values())


@contextmanager
def driver(environment: dict[str, str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """The jobs in a process of their own."""
    with log.open("ab") as output:
        words = [sys.executable, "-m", "pipelines.cli.main", "run", *JOBS]
        process = subprocess.Popen(words, env=environment, stdout=output, stderr=output, start_new_session=True)
    try:
        yield process
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            process.wait(90)


def until(settings: Settings, count: int, what: str, seconds: float = 600.0) -> float:
    """Waits until so many verdicts are in Kafka; returns the seconds it took."""
    began = time.monotonic()
    while judged(settings) < count:
        if time.monotonic() > began + seconds:
            raise TimeoutError(what)
        time.sleep(0.1)
    return time.monotonic() - began


def run(series: int) -> dict[str, Any]:
    """Measures both; returns the figures."""
    with tempfile.TemporaryDirectory(prefix="newnormal-savepoints-") as folder:
        asked = load(state_dir=Path(folder) / "servers", **{"console.port": 0})
        with embedded(asked) as servers:
            given = jobs_on(servers.settings(asked), Path(folder) / "jobs")
            given["DETECTOR__EMIT"] = "all"  # verdicts are counted to see how far the detector is
            environment = os.environ | variables(given)
            settings = load(state_dir=given["STATE_DIR"], **{"kafka.bootstrap": given["KAFKA__BOOTSTRAP"]})
            wanted = {settings.topic(name): config for name, config in topics.configs().items()}
            ensure_topics(settings.kafka.bootstrap or "", wanted, settings.kafka.partitions)
            feed, log = Feed(settings, series, lambda: judged(settings)), Path(folder) / "driver.log"
            thread = threading.Thread(target=feed.run, daemon=True)
            thread.start()
            try:
                return _measured(settings, environment, log, series)
            finally:
                feed.stopped.set()
                thread.join(60)


def _measured(settings: Settings, environment: dict[str, str], log: Path, series: int) -> dict[str, Any]:
    with driver(environment, log) as process:
        until(settings, LEARNED * series, "the first verdicts")
        checkpoint = settings.folder("checkpoints") / "detector"
        batch, began = last_committed(checkpoint), time.monotonic()
        words = [sys.executable, "-m", "pipelines.cli.main", "savepoint", "create", "bench"]
        made = subprocess.run(words, env=environment, capture_output=True, text=True, check=True)
        command = time.monotonic() - began
        until(settings, judged(settings) + 1, "a verdict after the savepoint")
        figures: dict[str, Any] = {
            "series": series,
            "savepoint_command_seconds": round(command, 1),
            "savepoint_said": made.stdout.strip(),
            "micro_batches_of_the_detector_meanwhile": last_committed(checkpoint) - batch,
        }
        process.send_signal(signal.SIGKILL)
        process.wait(30)
    killed, before = time.monotonic(), judged(settings)
    with driver(environment, log):
        until(settings, before + 1, "a verdict after the kill")
        figures["first_verdict_after_kill_seconds"] = round(time.monotonic() - killed, 1)
    return figures
