"""What an agent may send to stop a pipeline, sent to one with a heap of 2 GB while honest agents go on.

The broker is somebody else's, so it takes what becomes 950 MB, and records of millions of headers. Of how late honest
samples are in the partitions without hostile ones the median is judged: the greatest delay says more of what else the
machine does.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections import Counter
from itertools import islice
from pathlib import Path
from statistics import median
from typing import Any

import pytest
from confluent_kafka import Producer

from engine.formats import columnar
from engine.kafka.admin import ensure_topics
from engine.kafka.content import content
from pipelines.contracts import topics
from pipelines.contracts.records import Log, Telemetry
from pipelines.contracts.settings import load
from tests.foreign_kafka import foreign_kafka
from tests.integration.conftest import Pipeline
from tests.pipelines.formats.hostile import messages

SIZE = 15_700_000
LEGAL = int(os.environ.get("HOSTILE_LARGE_MESSAGES", "4"))
"""How many messages of many bytes that are good otherwise: 1,000 are 16 GB together."""
EACH = int(os.environ.get("HOSTILE_EACH_SHAPE", "4"))
"""Which shapes of messages are sent: each fourth one; 1: all."""
HEADERS = 3_000_000
WITHIN = 5
"""So many seconds after it was sent an honest sample must have been read, in the median."""
NAMES = 40_000
JOBS = ("normalizer", "log_normalizer", "extractor", "detector")
MEMORY = {"NEWNORMAL_ENGINE__DRIVER_MEMORY": "2g", "NEWNORMAL_ENGINE__CORES": "2"}


class Honest:
    """An agent in each partition that sends a sample twice a second, and the times at which they arrived."""

    def __init__(self, bootstrap: str, partitions: int) -> None:
        self._producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 0})
        self._partitions, self._ended, self.sent = partitions, threading.Event(), 0
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def end(self) -> None:
        self._ended.set()
        self._thread.join()
        assert not self._producer.flush(30)

    def _run(self) -> None:
        while not self._ended.wait(0.5):
            for partition in range(self._partitions):
                sample = {"@timestamp": int(time.time() * 1000), "host.name": f"honest-{partition}", "metric": "cpu"}
                self._producer.produce(topics.RAW_AGENTS, json.dumps(sample | {"value": 1.0}).encode(), None, partition)
                self.sent += 1
            self._producer.poll(0)


def delays(pipeline: Pipeline, since: float = 0) -> dict[int, list[float]]:
    """For each partition of the agents, after how many seconds its honest samples since then were in `telemetry`."""
    found: dict[int, list[float]] = {}
    for message in content(pipeline.settings.kafka.bootstrap or "", topics.TELEMETRY):
        value = message.value() or b""
        if not value.startswith(b"\xff\xff\xff\xff"):
            continue
        written = message.timestamp()[1]
        table, _ = columnar.decode(value, Telemetry.arrow_schema())
        for row in table.select(["time", "entity"]).to_pylist():
            if row["entity"].startswith("honest-") and row["time"] >= since * 1000:
                found.setdefault(int(row["entity"][7:]), []).append((written - row["time"]) / 1000)
    return found


def refusals(pipeline: Pipeline) -> Counter[str]:
    """How many dead letters there are of each code."""
    letters = [json.loads(message.value() or b"{}") for message in pipeline.read(topics.DEADLETTER)]
    return Counter(letter["error.code"] for letter in letters)


def hostile(bootstrap: str) -> Counter[str]:
    """Sends everything to partition 0; returns how many messages of each topic must be refused whole."""
    options = {"compression.type": "zstd", "message.max.bytes": 1_000_000_000, "batch.size": 1_000_000_000}
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 100, **options})
    told = list[Any]()

    def send(topic: str, value: bytes, headers: int = 0) -> None:
        some = [("", None)] * headers
        producer.produce(topic, value, None, 0, headers=some, on_delivery=lambda error, _: told.append(error))
        while producer.flush(1):
            pass

    sent = Counter[str]()
    for topic in (topics.RAW_AGENTS, topics.LOGS_AGENTS, topics.RAW_JSON):
        send(topic, b"x" * 950_000_000)
        sent["RECORD_TOO_LARGE"] += 1
    for _, record, value in islice(messages(SIZE, 1, 12), 0, None, EACH):
        send(topics.LOGS_AGENTS if record is Log else topics.RAW_AGENTS, value)
    sample = b'{"@timestamp":%d,"host.name":"legal","metric":"m","value":1,"x":"' % (time.time() * 1000)
    for _ in range(LEGAL):
        send(topics.RAW_JSON, sample + b"x" * (SIZE - len(sample) - 2) + b'"}')
    for _ in range(3):
        send(topics.RAW_AGENTS, b"among headers", HEADERS)
        sent["FORMAT_UNKNOWN"] += 1
    sent |= Counter(("TOO_MANY_PARTS", "TOO_MANY_KEYS"))
    now = int(time.time() * 1000)
    for begin in range(0, NAMES, 10_000):
        lines = [f"invented,host=one v{n}=1 {now}000000" for n in range(begin, begin + 10_000)]
        send(topics.RAW_AGENTS, "\n".join(lines).encode())
    assert told and not any(told)
    return sent


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.servers
@pytest.mark.timeout(1800)
def test_no_hostile_message_ends_a_pipeline_of_two_gigabytes_or_keeps_honest_agents_waiting(tmp_path: Path) -> None:
    with foreign_kafka(tmp_path, "1g") as bootstrap:
        settings = load(state_dir=tmp_path / "state", **{"kafka.bootstrap": bootstrap})
        ensure_topics(bootstrap, {name: topics.config(name) for name in topics.configs()}, settings.kafka.partitions)
        given = {"NEWNORMAL_KAFKA__BOOTSTRAP": bootstrap, "NEWNORMAL_STATE_DIR": str(tmp_path / "state"), **MEMORY}
        pipeline = Pipeline(settings, tmp_path / "run.log", {**os.environ, **given, "NEWNORMAL_CONSOLE__PORT": "0"})
        honest = Honest(bootstrap, settings.kafka.partitions)
        try:
            pipeline.start(*JOBS)
            pipeline.wait("the first sample", lambda: bool(delays(pipeline)))
            begin = time.time()
            wanted = hostile(bootstrap)
            pipeline.wait("each refusal", lambda: refusals(pipeline) >= wanted, 900)
            honest.end()
            pipeline.wait("all honest samples", lambda: sum(map(len, delays(pipeline).values())) == honest.sent, 900)
            beside = {partition: (median(some), max(some)) for partition, some in delays(pipeline, begin).items()}
            print(f"{refusals(pipeline)}; delay of honest samples by partition, median and greatest: {beside} s")
            assert all(middle < WITHIN for partition, (middle, _) in beside.items() if partition)
            said = pipeline.log.read_text()
            assert "OutOfMemoryError" not in said
            assert "SPARK_ENDED" not in said
            assert "JOB_FAILED" not in said
        finally:
            honest.end()
            pipeline.stop()
