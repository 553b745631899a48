"""The demo's inputs (this machine and a simulated site), and the summary of what the chain found in them."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import structlog

from datagen.agent import Agent, run_agent
from datagen.buffered import buffered
from datagen.groundtruth import GroundTruth
from datagen.simulator import demo, simulate
from datagen.sinks import KafkaSink
from engine.spec.duration import iso
from pipelines.contracts.elasticsearch_client import elasticsearch_client
from pipelines.contracts.records import Rule
from pipelines.contracts.records.novelty import ALARM_KINDS
from pipelines.contracts.settings import Settings
from pipelines.runtime.demo_runs import Runs
from pipelines.runtime.driver import Driver

log = structlog.get_logger()
_GRACE_MS = 60_000


class Inputs:
    """The demo's two sources, each in a thread of its own: the simulated site, and the agent of this machine.

    The agent starts when the simulated history has been sent. Both sources write through one buffer on disk. A second
    start goes on where the first stopped, see `Runs`, and first sends what Kafka had not accepted.

    Args:
        settings: The settings, with the servers' addresses filled in.
        now: Instant at which the live part begins, epoch milliseconds.
    """

    def __init__(self, settings: Settings, now: int) -> None:
        self.settings, self.stopping, self.live = settings, threading.Event(), threading.Event()
        self.truth = settings.file("groundtruth.jsonl")
        self.runs = Runs(settings.file("demo.json"), now)
        self.config = demo(now, earlier=self.runs.earlier)
        self.agent = Agent()
        self.failure: BaseException | None = None
        self.threads = [self._thread(self._simulate), self._thread(self._agent)]
        self._outlet = ExitStack()

    @property
    def pause(self) -> list[Rule]:
        """The rules for the silence since the last run, to be written before the sources start; see `Runs.pause`."""
        return self.runs.pause(self.agent.entity)

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

    def _simulate(self) -> None:
        with self.truth.open("a", encoding="utf-8") as truth:
            sink = KafkaSink(self._writer, self.settings.namespace, truth)
            simulate(self.config, sink, self.stopping, progress=self._progress, since=self.runs.until)

    def _progress(self, _records: int, reached: int) -> None:
        self.runs.reach(reached)
        if reached >= (self.config.start or 0) + self.config.backfill:
            self.live.set()

    def _agent(self) -> None:
        self.live.wait()
        run_agent(KafkaSink(self._writer, self.settings.namespace), stop=self.stopping, agent=self.agent)

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
        many of those have a novelty at their time; ``not_detected``: what happened where and when of the others.
    """
    tallies = driver.status.tallies
    events, missed = _missed(driver.settings, inputs.truth)
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
        "injected": events,
        "detected": events - len(missed),
        "not_detected": missed,
    }


def _missed(settings: Settings, truth: Path) -> tuple[int, list[str]]:
    """Counts the events of the ground truth; names those without a novelty on one of their machines.

    A novelty counts from the beginning of the event up to a minute after its end.
    """
    client = elasticsearch_client(settings.elasticsearch.url or "")
    events: dict[str, list[GroundTruth]] = {}
    for line in truth.read_text().splitlines() if truth.exists() else []:
        row = GroundTruth.from_json(line)
        events.setdefault(row.incident, []).append(row)
    missed = []
    for rows in events.values():
        clauses = [
            {
                "bool": {
                    "filter": [
                        {"term": {"host.name": row.entity}},
                        {"terms": {"kind": list(ALARM_KINDS)}},
                        {"range": {"@timestamp": {"gte": row.start, "lte": row.end + _GRACE_MS}}},
                    ]
                }
            }
            for row in rows
        ]
        query = {"bool": {"should": clauses, "minimum_should_match": 1}}
        if not client.count(index=settings.alias, query=query)["count"]:
            missed.append(f"{rows[0].type} of {rows[0].entity} from {iso(rows[0].start)} to {iso(rows[0].end)}")
    client.close()
    return len(events), missed
