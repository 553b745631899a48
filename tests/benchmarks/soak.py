"""Whether the whole chain holds its rate for long on a large site, and with how much memory.

``newnormal bench soak`` feeds windows of all series, one after the other, as fast as the detector judges them with a
few windows waiting, to all jobs as ``newnormal run`` starts them, with ``detector.emit = "context"``. Meanwhile a few
machines at a time are in trouble: their metrics lie far off for some minutes, so there is always context to store.
Verdicts judged are counted as the rows of `features` up to the offsets in the detector's checkpoint.
"""

from __future__ import annotations

import json
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition
from elasticsearch import Elasticsearch

from deploy.embedded.services import embedded
from engine.formats import columnar
from engine.formats.heartbeat import HEARTBEAT
from engine.kafka.admin import ensure_topics
from engine.kafka.offsets import KafkaOffsets
from engine.spark.checkpoint_offsets import committed_offsets
from pipelines.contracts import topics
from pipelines.contracts.elasticsearch_client import elasticsearch_client
from pipelines.contracts.records import Features
from pipelines.contracts.settings import Settings, load
from pipelines.plan.advice import most_messages
from tests.benchmarks.queries import say
from tests.benchmarks.replay import jobs_on, variables
from tests.benchmarks.savepoints import SIZE, Feed
from tests.chaos.runs.apart import apart
from tests.chaos.runs.driver import DriverProcess
from tests.chaos.runs.footprint import Footprint

WARM_SECONDS, LOOK_SECONDS = 300, 10
"""How long the JVM compiles and caches fill before anything counts; how often the figures are taken."""
AHEAD = 10
"""Windows of all series that may wait for the detector: enough for full micro-batches of all jobs at the same time."""
TROUBLED, LASTS, OFF = 10, 20, 60.0
"""Machines in trouble at a time, for how many windows, and how far their metrics then lie from their mean, 50."""


class TroubledFeed(Feed):
    """A `Feed` in which some machines are in trouble, other ones after a while.

    Args:
        settings: The pipeline's.
        series: Their number, ten of each machine.
        judged: Tells how many verdicts there are.
    """

    def __init__(self, settings: Settings, series: int, judged: Callable[[], int]) -> None:
        super().__init__(settings, series, judged, AHEAD)
        self.start -= 6 * 3_600_000  # the event time runs faster than the clock, and must not overtake it

    def values(self) -> np.ndarray:
        """The values of one sample of each series, shape (series,)."""
        machines = max(TROUBLED, self.series // 10)
        first = self.sent // LASTS * TROUBLED % machines * 10
        found = super().values()
        found[first : first + TROUBLED * 10] += OFF
        return found


class Judged:
    """Counts the rows of `features` that the detector has judged.

    Args:
        settings: The pipeline's.
    """

    def __init__(self, settings: Settings) -> None:
        self._topic, self._checkpoint = settings.topic(topics.FEATURES), settings.folder("checkpoints") / "detector"
        self._rows: dict[int, list[tuple[int, int]]] = {p: [] for p in range(settings.kafka.partitions)}
        self._before = Counter[int]()
        options = {"bootstrap.servers": settings.kafka.bootstrap, "group.id": "soak", "enable.auto.commit": False}
        self._consumer = Consumer(options | {"isolation.level": "read_committed"})
        self._consumer.assign([TopicPartition(self._topic, p, OFFSET_BEGINNING) for p in self._rows])

    def look(self) -> int:
        """Rows judged until now."""
        while messages := self._consumer.consume(1_000, 0.05):
            for message in messages:
                value, partition, offset = message.value() or b"", message.partition(), message.offset()
                if message.error() is None and value != HEARTBEAT and partition is not None and offset is not None:
                    rows, _ = columnar.decode(value, Features.arrow_schema())
                    self._rows[partition].append((offset, rows.num_rows))
        reached = committed_offsets(self._checkpoint).get(self._topic, {})
        for partition, rows in self._rows.items():
            end = int(reached.get(str(partition), 0))
            self._before[partition] += sum(count for offset, count in rows if offset < end)
            self._rows[partition] = [each for each in rows if each[0] >= end]
        return self._before.total()


def run(series: int, minutes: float, out: Path | None) -> dict[str, Any]:
    """Measures; writes a line of JSON every ten seconds and the memory every thirty to files in ``out``, if given."""
    with tempfile.TemporaryDirectory(prefix="newnormal-soak-") as scratch:
        folder = (out or Path(scratch)).absolute()
        folder.mkdir(parents=True, exist_ok=True)
        for name in ("footprint.jsonl", "soak.jsonl"):
            (folder / name).unlink(missing_ok=True)
        with apart(Path(scratch)), embedded(asked := load(state_dir=Path(scratch) / "servers")) as servers:
            found = servers.settings(asked)
            most = most_messages(series, asked.kafka.partitions, asked.engine.shards)
            own = {"DETECTOR__EMIT": "context", "ENGINE__MAX_RECORDS": str(most)}
            given = variables(jobs_on(found, Path(scratch) / "jobs") | own)
            settings = load(state_dir=Path(scratch) / "jobs", **{"kafka.bootstrap": found.kafka.bootstrap})
            wanted = {settings.topic(name): config for name, config in topics.configs().items()}
            ensure_topics(settings.kafka.bootstrap or "", wanted, settings.kafka.partitions)
            driver = DriverProcess(Path(scratch), given, folder / "driver.log", "run")
            driver.start()
            try:
                return _measured(settings, driver, series, minutes, folder, found.elasticsearch.url or "")
            finally:
                driver.stop()


def _measured(
    settings: Settings, driver: DriverProcess, series: int, minutes: float, folder: Path, url: str
) -> dict[str, Any]:
    judged, counted = Judged(settings), [0]
    feed = TroubledFeed(settings, series, lambda: counted[0])
    thread = threading.Thread(target=feed.run, daemon=True)
    thread.start()
    footprint, began = Footprint(folder / "footprint.jsonl", driver), time.monotonic()
    lines: list[dict[str, Any]] = []
    novelties = settings.topic(topics.NOVELTIES)
    ends = KafkaOffsets(settings.kafka.bootstrap or "", [novelties])
    try:
        while (now := time.monotonic() - began) < WARM_SECONDS + 60 * minutes:
            if driver.mend():
                raise RuntimeError(f"the pipeline ended: {folder / 'driver.log'}")
            counted[0] = judged.look()
            if not lines or now - lines[-1]["seconds"] >= LOOK_SECONDS:
                indexed = committed_offsets(settings.folder("checkpoints") / "sink").get(novelties, {})
                lag = sum(ends.ends().values()) - sum(indexed.values())
                lines.append({"seconds": round(now, 1), "judged": counted[0], "sink_lag": lag})
                with (folder / "soak.jsonl").open("a", encoding="utf-8") as log:
                    log.write(json.dumps(lines[-1]) + "\n")
                say(f"{now:6.0f} s  judged {counted[0]:,}  sink behind by {lag:,}")
            footprint.look()
            feed.stopped.wait(0.3)
    finally:
        feed.stopped.set()
        thread.join(60)
    return _figures(lines, folder, series, elasticsearch_client(url), SIZE * feed.sent)


def _figures(
    lines: list[dict[str, Any]], folder: Path, series: int, client: Elasticsearch, span_ms: int
) -> dict[str, Any]:
    counted = [line for line in lines if line["seconds"] >= WARM_SECONDS]
    first, last = counted[0], counted[-1]
    seconds = last["seconds"] - first["seconds"]
    thirds = [counted[len(counted) * k // 3 : len(counted) * (k + 1) // 3] for k in range(3)]
    memory = [json.loads(line) for line in (folder / "footprint.jsonl").read_text().splitlines()]
    used = np.array([[each[part]["memory"] / 2**20 for part in ("driver", "jvm", "workers")] for each in memory])
    at = np.array([each["at"] for each in memory])
    used, at = used[at - at[0] >= WARM_SECONDS], at[at - at[0] >= WARM_SECONDS]
    client.indices.refresh()
    documents = int(client.count(index="novelties*")["count"])
    return {
        "series": series,
        "minutes": round(seconds / 60, 1),
        "verdicts_per_second": round((last["judged"] - first["judged"]) / seconds),
        "by_thirds": [round((t[-1]["judged"] - t[0]["judged"]) / (t[-1]["seconds"] - t[0]["seconds"])) for t in thirds],
        "times_as_fast_as_live": round((last["judged"] - first["judged"]) / seconds / (series / SIZE * 1000), 2),
        "most_documents_the_sink_was_behind": max(line["sink_lag"] for line in counted),
        "documents_behind_at_the_end": last["sink_lag"],
        "documents_a_verdict": round(documents / max(1, last["judged"]), 5),
        "documents": documents,
        "event_time_hours": round(span_ms / 3_600_000, 2),
        "memory_mb": {
            part: {
                "first": round(float(column[0])),
                "last": round(float(column[-1])),
                "most": round(float(column.max())),
                "a_minute": round(float(np.polyfit(at - at[0], column, 1)[0] * 60), 2),
            }
            for part, column in zip(("driver", "jvm", "workers"), used.T, strict=True)
        },
    }
