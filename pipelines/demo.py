"""The demo: this machine and a simulated site through the whole chain, and a summary of what came of it."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import structlog
from elasticsearch import Elasticsearch

from datagen.agent import run_agent
from datagen.simulator import KafkaSink, demo, simulate
from pipelines import topics
from pipelines.driver import Driver
from pipelines.settings import Settings
from pipelines.watch import Watch

log = structlog.get_logger()
_GRACE_MS = 60_000
_NOVEL = ["anomaly", "state_change", "new_normal", "absence"]


class Inputs:
    """The demo's sources, each in a thread of its own: the simulated site, then the agent of this machine.

    Args:
        settings: With addresses.
        now: Epoch ms at which the live part begins.
    """

    def __init__(self, settings: Settings, now: int) -> None:
        self.settings, self.stopping = settings, threading.Event()
        self.truth = settings.state / "groundtruth.jsonl"
        self.config = demo(now)
        self.failure: BaseException | None = None
        self.threads = [self._thread(self._simulate), self._thread(self._agent)]

    def start(self) -> None:
        """Starts to send."""
        for thread in self.threads:
            thread.start()

    def stop(self) -> None:
        """Stops to send; returns when all that was sent has arrived."""
        self.stopping.set()
        for thread in self.threads:
            thread.join(30)

    def _simulate(self) -> None:
        bootstrap = self.settings.kafka.bootstrap or ""
        with KafkaSink(bootstrap, self.settings.namespace, self.truth) as sink:
            simulate(self.config, sink, self.stopping)

    def _agent(self) -> None:
        run_agent(self.settings.kafka.bootstrap or "", self.settings.topic(topics.RAW_JSON), self.stopping)

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
        ``events_in`` records read by the normalizer, ``late``, ``dead_lettered``, ``features``, ``novelties`` verdicts
        written, ``indexed`` documents stored by this run, ``latency_ms`` of live windows (p50, p99), ``injected`` incidents
        and changes of the ground truth, ``detected`` those of them with a novelty of that machine in that time.
    """
    tallies = driver.board.tallies
    injected, detected = _found(driver.settings, inputs.truth)
    return {
        "events_in": tallies["normalizer"].records_in,
        "late": sum(t.late for t in tallies.values()),
        "dead_lettered": sum(t.dead for t in tallies.values()),
        "features": tallies["extractor"].records_out,
        "novelties": tallies["detector"].records_out,
        "indexed": driver.board.indexed,
        "latency_ms": driver.board.latency_ms(),
        "injected": injected,
        "detected": detected,
    }


def _found(settings: Settings, truth: Path) -> tuple[int, int]:
    """Events of the ground truth, and those with a novelty of one of their machines in their time or a minute after."""
    client = Elasticsearch(settings.elasticsearch.url or "")
    events: dict[str, list[dict[str, Any]]] = {}
    for line in truth.read_text().splitlines() if truth.exists() else []:
        row = json.loads(line)
        events.setdefault(str(row["id"]), []).append(row)
    found = 0
    for rows in events.values():
        clauses = [
            {
                "bool": {
                    "filter": [
                        {"term": {"host.name": row["entity"]}},
                        {"terms": {"kind": _NOVEL}},
                        {"range": {"@timestamp": {"gte": row["start"], "lte": row["end"] + _GRACE_MS}}},
                    ]
                }
            }
            for row in rows
        ]
        query = {"bool": {"should": clauses, "minimum_should_match": 1}}
        found += client.count(index=settings.elasticsearch.index, query=query)["count"] > 0
    client.close()
    return len(events), found
