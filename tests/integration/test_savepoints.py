"""A savepoint of running jobs, and what they compute when they go back to it with another number of shards."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Sequence

import pytest
from confluent_kafka import Producer

from engine.formats import columnar
from pipelines.contracts import topics
from pipelines.contracts.records import Features
from tests.integration.conftest import Pipeline

pytestmark = [pytest.mark.servers, pytest.mark.spark, pytest.mark.timeout(600)]

ENTITIES, METRICS, STEP, SIZE = 12, 2, 1_000, 10_000
JOBS = ("normalizer", "extractor", "detector")
Window = tuple[str, str, int]


def command(pipeline: Pipeline, *words: str) -> subprocess.CompletedProcess[str]:
    """Runs `newnormal savepoint`."""
    return subprocess.run(
        [sys.executable, "-m", "pipelines.cli.main", "savepoint", *words],
        env=pipeline.environment, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip


def send(pipeline: Pipeline, times: Sequence[int]) -> None:
    producer = Producer({"bootstrap.servers": pipeline.settings.kafka.bootstrap, "partitioner": "murmur2_random"})
    for at in times:
        for e in range(ENTITIES):
            for m in range(METRICS):
                value = {"@timestamp": at, "host.name": f"h{e}", "metric": f"m{m}", "value": float(at % 97 + e)}
                producer.produce(pipeline.settings.topic(topics.RAW_JSON), json.dumps(value), key=f"h{e}")
    producer.flush(30)


def counts(pipeline: Pipeline) -> dict[Window, int]:
    """The number of samples in each window, as its last message says."""
    found: dict[Window, int] = {}
    for message in pipeline.read(topics.FEATURES):
        for row in columnar.decode(message.value(), Features.arrow_schema())[0].to_pylist():
            found[row["entity"], row["metric"], row["window_start"]] = row["count"]
    return found


def judged(pipeline: Pipeline) -> set[Window]:
    return {
        (row["host.name"], row["metric"], row["window_start"])
        for message in pipeline.read(topics.NOVELTIES)
        if (row := json.loads(message.value()))["metric"].startswith("m")
    }


def test_jobs_go_back_to_a_savepoint_in_other_shards_and_lose_nothing(pipeline: Pipeline) -> None:
    begin = (int(time.time() * 1000) // SIZE - 90) * SIZE
    middle, end = begin + 30 * SIZE + SIZE // 2, begin + 60 * SIZE
    wanted = {(f"h{e}", f"m{m}", w) for e in range(ENTITIES) for m in range(METRICS) for w in range(begin, end, SIZE)}
    pipeline.start(*JOBS)
    send(pipeline, range(begin, middle, STEP))
    early = {window for window in wanted if window[2] < middle - 2 * SIZE}
    pipeline.wait("the first half", lambda: early <= counts(pipeline).keys() and early <= judged(pipeline))

    made = command(pipeline, "create", "before")
    assert made.returncode == 0, made.stderr
    assert "normalizer, extractor, detector" in made.stdout
    assert command(pipeline, "create", "before").returncode == 2
    send(pipeline, range(middle, end, STEP))
    late = {window for window in wanted if window[2] < end - 2 * SIZE}
    pipeline.wait("the second half", lambda: late <= counts(pipeline).keys())
    assert "ALREADY_RUNNING" in command(pipeline, "restore", "before", "--yes").stderr
    pipeline.stop()

    pipeline.environment["NEWNORMAL_ENGINE__SHARDS"] = "4"
    pipeline.start(*JOBS)
    assert pipeline.process is not None
    assert pipeline.process.wait(90) == 2
    assert "newnormal savepoint restore rescale --shards 4" in " ".join(pipeline.log.read_text().split())

    restored = command(pipeline, "restore", "before", "--shards", "4", "--yes")
    assert restored.returncode == 0, restored.stderr
    assert "micro-batches since the savepoint, which will be computed and written again" in restored.stdout
    before = len(pipeline.read(topics.FEATURES))
    pipeline.start(*JOBS)
    # a later sample closes all windows
    send(pipeline, [end + 3 * SIZE])
    pipeline.wait("the end", lambda: wanted <= counts(pipeline).keys() and wanted <= judged(pipeline))
    pipeline.stop()
    assert len(pipeline.read(topics.FEATURES)) > before
    found = counts(pipeline)
    # the window in the middle was open at the savepoint: half of its samples are in the state only
    assert {found[window] for window in wanted} == {SIZE // STEP}
