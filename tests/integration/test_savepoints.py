"""A savepoint of a running job, and what the job computes when it goes back to it with another number of shards."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Sequence

import pyarrow as pa
import pytest
from confluent_kafka import Producer

from engine.columns.partitioning import slots
from engine.formats import columnar
from pipelines.contracts import topics
from pipelines.contracts.records import Features, Telemetry
from tests.integration.conftest import Pipeline

pytestmark = [pytest.mark.servers, pytest.mark.spark, pytest.mark.timeout(600)]

ENTITIES, STEP, SIZE = 24, 1_000, 10_000
Window = tuple[str, int]


def send(pipeline: Pipeline, times: Sequence[int]) -> None:
    """Sends a sample of each machine at each time to `telemetry`, as the normalizer does."""
    settings, schema = pipeline.settings, Telemetry.arrow_schema()
    producer = Producer({"bootstrap.servers": settings.kafka.bootstrap})
    rows = [
        {"time": at, "entity": f"h{e}", "metric": "m", "value": float(at % 97 + e), "kind": "gauge"}
        for at in times
        for e in range(ENTITIES)
    ]
    table = pa.Table.from_pylist(rows, schema)
    where = slots(table.column("entity"), settings.kafka.partitions)
    for partition in range(settings.kafka.partitions):
        value = columnar.encode(table.filter(pa.array(where == partition)), max(times))
        producer.produce(settings.topic(topics.TELEMETRY), value, partition=partition)
    producer.flush(30)


def counts(pipeline: Pipeline) -> dict[Window, int]:
    """The number of samples in each window, as its last message says."""
    found: dict[Window, int] = {}
    for message in pipeline.read(topics.FEATURES):
        for row in columnar.decode(message.value(), Features.arrow_schema())[0].to_pylist():
            found[row["entity"], row["window_start"]] = row["count"]
    return found


def test_a_job_goes_back_to_a_savepoint_in_other_shards_and_loses_nothing(pipeline: Pipeline) -> None:
    begin = (int(time.time() * 1000) // SIZE - 60) * SIZE
    middle, end = begin + 10 * SIZE + SIZE // 2, begin + 20 * SIZE
    wanted = {(f"h{e}", window) for e in range(ENTITIES) for window in range(begin, end, SIZE)}
    pipeline.start("extractor")
    send(pipeline, range(begin, middle, STEP))
    pipeline.wait("the first half", lambda: {w for w in wanted if w[1] + SIZE < middle} <= counts(pipeline).keys())
    assert "savepoint before: extractor" in pipeline.command("savepoint", "create", "before")
    shards = [json.loads(line) for line in pipeline.command("savepoint", "show", "before", "--json").splitlines()]
    assert sum(shard["keys"] for shard in shards) == ENTITIES
    told = pipeline.command("savepoint", "show", "before", "--series", "h3/m")
    assert re.match(r"extractor: \d+ windows are open or kept for late records; the newest value is of ", told)
    send(pipeline, range(middle, end, STEP))
    pipeline.wait("the second half", lambda: {w for w in wanted if w[1] + SIZE < end} <= counts(pipeline).keys())
    assert "ALREADY_RUNNING" in pipeline.refused("savepoint", "restore", "before", "--yes")
    pipeline.stop()
    before = len(pipeline.read(topics.FEATURES))

    restored = pipeline.command("savepoint", "restore", "before", "--shards", "4", "--yes")
    assert "messages since the savepoint, which will be read again, and their results written again" in restored
    assert "set engine.shards = 4" in restored
    pipeline.environment["NEWNORMAL_ENGINE__SHARDS"] = "4"
    pipeline.start("extractor")
    send(pipeline, [end + 2 * SIZE])  # a later sample closes all windows
    pipeline.wait("the end", lambda: wanted <= counts(pipeline).keys())
    pipeline.stop()
    found = counts(pipeline)
    # the window in the middle was open at the savepoint: half of its samples are in the state only
    assert {found[window] for window in wanted} == {SIZE // STEP}
    assert len(pipeline.read(topics.FEATURES)) > before, "what came after the savepoint is written again"
