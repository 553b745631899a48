"""The demo's inputs (this machine and a simulated site), and the summary of what the chain found in them."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import structlog

from datagen.agent import run_agent
from datagen.buffered import buffered
from datagen.simulator import SimulatorConfig, demo, simulate
from datagen.sinks import KafkaSink
from pipelines.contracts.elasticsearch_client import elasticsearch_client
from pipelines.contracts.records.novelty import ALARM_KINDS
from pipelines.contracts.settings import Settings
from pipelines.runtime.driver import Driver

log = structlog.get_logger()
_GRACE_MS = 60_000


class Inputs:
    """The demo's two sources, each in a thread of its own: the simulated site, and the agent of this machine.

    The agent starts when the simulated history has been sent. Both sources write through one buffer on disk. A second
    start continues where the first stopped: it does not send history again, and first sends what Kafka had not
    accepted.

    Args:
        settings: The settings, with the servers' addresses filled in.
        now: Instant at which the live part begins, epoch milliseconds.
    """

    def __init__(self, settings: Settings, now: int) -> None:
        self.settings, self.stopping, self.live = settings, threading.Event(), threading.Event()
        self.truth, self.mark = settings.file("groundtruth.jsonl"), settings.file("demo.json")
        self.config = self._go_on(demo(now))
        self.reached = self.config.start or now
        self.failure: BaseException | None = None
        self.threads = [self._thread(self._simulate), self._thread(self._agent)]
        self._outlet = ExitStack()

    def start(self) -> None:
        """Starts the sources.

        Raises:
            NewnormalError: ``BUFFER_UNUSABLE`` if the buffer's folder cannot be used.
        """
        bootstrap = self.settings.kafka.bootstrap or ""
        self._writer = self._outlet.enter_context(buffered(self.settings, "demo", lambda: bootstrap, log.warning))
        for thread in self.threads:
            thread.start()

    def stop(self) -> None:
        """Stops the sources; returns when Kafka has accepted all records, or does not answer."""
        self.stopping.set()
        self.live.set()
        for thread in self.threads:
            thread.join(30)
        self._outlet.close()
        self.mark.write_text(json.dumps({"until": self.reached}))

    def _go_on(self, config: SimulatorConfig) -> SimulatorConfig:
        start = config.start or 0
        if not self.mark.exists():
            return config
        until = int(json.loads(self.mark.read_text())["until"])
        later = max(start, -(-until // config.step) * config.step)
        kept = tuple(incident for incident in config.incidents if incident.start >= later)
        return replace(config, start=later, backfill=max(0, start + config.backfill - later), incidents=kept)

    def _simulate(self) -> None:
        with self.truth.open("a", encoding="utf-8") as truth:
            sink = KafkaSink(self._writer, self.settings.namespace, truth)
            simulate(self.config, sink, self.stopping, progress=self._progress)

    def _progress(self, _records: int, reached: int) -> None:
        self.reached = reached
        if reached >= (self.config.start or 0) + self.config.backfill:
            self.live.set()

    def _agent(self) -> None:
        self.live.wait()
        run_agent(KafkaSink(self._writer, self.settings.namespace), stop=self.stopping)

    def _thread(self, work: Callable[[], None]) -> threading.Thread:
        def guarded() -> None:
            try:
                work()
            except BaseException as error:
                self.failure = error
                log.error("a source of the demo failed", reason=str(error))

        return threading.Thread(target=guarded, daemon=True)


def summarize(driver: Driver, inputs: Inputs) -> dict[str, Any]:
    """Sums up a run of the demo.

    Returns:
        ``events_in`` and ``log_lines``: samples and log lines that were read; ``late`` and ``dead_lettered`` records of
        all jobs; ``features`` and ``novelties``: records written; ``indexed``: documents stored; ``latency_ms``: p50
        and p99 of windows after the history, from the end of the window until it is found; ``waits_ms``: how much of
        that a window waits for late records; ``injected``: incidents and changes in the ground truth; ``detected``: how
        many of those have a novelty at their time.
    """
    tallies = driver.status.tallies
    injected, detected = _found(driver.settings, inputs.truth)
    return {
        "events_in": tallies["normalizer"].records_in,
        "log_lines": tallies["log_normalizer"].records_in,
        "late": sum(t.late for t in tallies.values()),
        "dead_lettered": sum(t.dead for t in tallies.values()),
        "features": tallies["extractor"].records_out,
        "novelties": tallies["detector"].records_out + tallies["log_detector"].records_out,
        "indexed": driver.status.indexed,
        "latency_ms": driver.status.latency_ms(),
        "waits_ms": driver.status.delay_ms,
        "injected": injected,
        "detected": detected,
    }


def _found(settings: Settings, truth: Path) -> tuple[int, int]:
    """Counts the events of the ground truth, and those with a novelty on one of their machines up to a minute later."""
    client = elasticsearch_client(settings.elasticsearch.url or "")
    events: dict[str, list[dict[str, Any]]] = {}
    for line in truth.read_text().splitlines() if truth.exists() else []:
        row = json.loads(line)
        events.setdefault(str(row["incident"]), []).append(row)
    found = 0
    for rows in events.values():
        clauses = [
            {
                "bool": {
                    "filter": [
                        {"term": {"host.name": row["entity"]}},
                        {"terms": {"kind": list(ALARM_KINDS)}},
                        {"range": {"@timestamp": {"gte": row["start"], "lte": row["end"] + _GRACE_MS}}},
                    ]
                }
            }
            for row in rows
        ]
        query = {"bool": {"should": clauses, "minimum_should_match": 1}}
        found += client.count(index=settings.alias, query=query)["count"] > 0
    client.close()
    return len(events), found
