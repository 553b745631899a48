"""The demo: its inputs (this machine and a simulated site), its earlier runs, and a summary of what the chain found."""

from __future__ import annotations

import json
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
from datagen.simulator.config import DEMO_HISTORY_MS, DEMO_LIVE_VMS
from datagen.sinks import KafkaSink
from engine.files import write_whole
from engine.spec.duration import iso
from pipelines.contracts.elasticsearch_client import elasticsearch_client
from pipelines.contracts.records import Rule
from pipelines.contracts.records.novelty import ALARM_KINDS
from pipelines.contracts.settings import Settings
from pipelines.runtime.driver import Driver

_SIMULATED = ("host-???", "vm-?????")
"""Globs of the names of the simulated machines."""

_MOST_RUNS = 60
"""The most earlier runs from which one goes on: each is computed again."""
log = structlog.get_logger()
_GRACE_MS = 60_000


class Runs:
    """The earlier runs of the demo, and how far they came; kept in a file.

    The site goes on from the earlier runs, with the time between as further history, unless the last one ended before
    the history of a new demo begins. Then the site starts anew: nothing is known of the time between. Of many runs the
    oldest are forgotten, as many at a time as change places with each other: then counters begin later, as after a
    reboot, and each run that is left has its surge and its outage on the machines on which they were.

    Args:
        file: The file.
        now: Instant at which the live part of this run begins, epoch milliseconds.

    Attributes:
        earlier: Instants at which the live parts of the runs began from which this one goes on, epoch milliseconds.
        until: The instant up to which earlier runs sent what arrived, epoch milliseconds; ``None`` without an earlier
            run.
    """

    def __init__(self, file: Path, now: int) -> None:
        self.file, self.now = file, now
        known = json.loads(file.read_text()) if file.exists() else {}
        self.until: int | None = known.get("until")
        goes_on = self.until is not None and self.until > now - DEMO_HISTORY_MS
        earlier = tuple(known.get("runs", ())) if goes_on else ()
        turns = len(DEMO_LIVE_VMS)
        self.earlier: tuple[int, ...] = earlier[-(-max(0, len(earlier) - _MOST_RUNS) // turns) * turns :]

    def reach(self, until: int) -> None:
        """Notes how far this run has come, so that the next one goes on from there even if this one is killed."""
        write_whole(self.file, json.dumps({"runs": [*self.earlier, self.now], "until": until}))

    def pause(self, machine: str) -> list[Rule]:
        """The rules that nobody is told of the silence between the last run and this one; empty without a pause.

        Args:
            machine: This machine, whose agent is stopped between the runs. If the site starts anew, the simulated
                machines are silent too, until its history begins. Other machines, which are no part of the demo, are
                not muted.
        """
        if self.until is None or self.until >= self.now:
            return []
        until = self.until
        muted = {machine: self.now}
        if not self.earlier:
            muted |= dict.fromkeys(_SIMULATED, self.now - DEMO_HISTORY_MS)
        return [
            Rule(
                id=f"demo-pause-{iso(until)}-{name}",
                time=until,
                entity=name,
                start=until,
                end=end,
                skip_result=True,
                note="newnormal demo was stopped",
            )
            for name, end in muted.items()
        ]


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
