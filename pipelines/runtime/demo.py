"""The demo: this machine and a simulated site through the whole chain, and a summary of what came of it."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import structlog
from elasticsearch import Elasticsearch

from datagen.agent import run_agent
from datagen.buffered import buffered
from datagen.simulator import SimulatorConfig, demo, simulate
from datagen.sinks import KafkaSink
from pipelines.contracts.records.novelty import ALARM_KINDS
from pipelines.contracts.settings import Settings
from pipelines.runtime.driver import Driver

log = structlog.get_logger()
_GRACE_MS = 60_000


class Inputs:
    """The demo's sources, each in a thread of its own: the simulated site, then the agent of this machine.

    Both write through one buffer on disk. A second start goes on where the first stopped: history that was sent before
    is not sent again, and what Kafka had not taken is sent first.

    Args:
        settings: With addresses.
        now: Epoch ms at which the live part begins.
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
        """Starts to send.

        Raises:
            NewnormalError: ``BUFFER_UNUSABLE``.
        """
        bootstrap = self.settings.kafka.bootstrap or ""
        self._writer = self._outlet.enter_context(buffered(self.settings, "demo", lambda: bootstrap, log.warning))
        for thread in self.threads:
            thread.start()

    def stop(self) -> None:
        """Stops to send; returns when all that was sent has arrived, or Kafka does not answer."""
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
    """What went through, what was found.

    Returns:
        ``events_in`` samples and ``log_lines`` read from the agents, ``late``, ``dead_lettered``, ``features``,
        ``novelties`` verdicts written, ``indexed`` documents stored by this run, ``latency_ms`` (p50, p99) of windows
        after the history went through, ``injected`` incidents and changes of the ground truth, ``detected`` those with
        a novelty then.
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
        "injected": injected,
        "detected": detected,
    }


def _found(settings: Settings, truth: Path) -> tuple[int, int]:
    """Events of the ground truth, and those with a novelty of one of their machines in their time or a minute after."""
    client = Elasticsearch(settings.elasticsearch.url or "")
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
        found += client.count(index=settings.index, query=query)["count"] > 0
    client.close()
    return len(events), found
