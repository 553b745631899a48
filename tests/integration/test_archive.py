"""The archive on real servers: exactly once over kill -9, read by other tools, and replayed before the log."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from engine.columns.partitioning import slots
from engine.formats.columnar import decode, encode
from engine.spec.duration import iso
from engine.spec.errors import NewnormalError
from pipelines.contracts import topics
from pipelines.contracts.records import Features, Telemetry
from pipelines.jobs.archive.layout import TopicFolder
from pipelines.jobs.archive.reader import ArchiveReader
from tests.integration.conftest import Pipeline

pytestmark = [pytest.mark.servers, pytest.mark.spark, pytest.mark.slow]

START = (int(time.time()) - 7_200) // 60 * 60_000
SECOND = 1_000
PARTITIONS = range(4)


def produce(pipeline: Pipeline, seconds: range, watermark: int) -> int:
    """Samples of 12 machines a second, as the normalizer writes them, and a last watermark; returns their number."""
    producer, topic = (
        Producer({"bootstrap.servers": pipeline.settings.kafka.bootstrap, "log_level": 0}),
        topics.TELEMETRY,
    )
    machines = pa.chunked_array([pa.array([f"m-{n}" for n in range(12)]).dictionary_encode()])
    partition_of = slots(machines, len(PARTITIONS))
    count = 0
    for begin in range(seconds.start, seconds.stop, 5):
        for partition in PARTITIONS:
            rows = [
                {"time": START + s * SECOND, "entity": f"m-{n}", "metric": "cpu", "value": float(s * n % 17)}
                | {"kind": "gauge"}
                for s in range(begin, begin + 5)
                for n in np.flatnonzero(partition_of == partition).tolist()
            ]
            count += len(rows)
            table = pa.Table.from_pylist(rows, Telemetry.arrow_schema())
            value, arrived = encode(table, START + (begin + 4) * SECOND), START + (begin + 5) * SECOND
            producer.produce(pipeline.settings.topic(topic), value, partition=partition, timestamp=arrived)
    for partition in PARTITIONS:
        value = encode(Telemetry.arrow_schema().empty_table(), START + watermark * SECOND)
        arrived = START + seconds.stop * SECOND
        producer.produce(pipeline.settings.topic(topic), value, partition=partition, timestamp=arrived)
    producer.flush()
    return count


def windows(pipeline: Pipeline) -> dict[tuple[str, int], tuple[Any, ...]]:
    """All windows of the replay with some statistics; a window that was written twice fails the test."""
    found: dict[tuple[str, int], tuple[Any, ...]] = {}
    with suppress(NewnormalError):  # the topic is not there yet
        for message in pipeline.read("features-v2"):
            for row in decode(message.value() or b"", Features.arrow_schema())[0].to_pylist():
                key = row["entity"], row["window_start"]
                assert key not in found, f"{key} was written twice"
                found[key] = (row["count"], round(row["mean"], 9), row["min"], row["max"], row["last"])
    return found


def window(machine: int, begin: int) -> tuple[Any, ...]:
    """The statistics of a window, from the definition of the samples."""
    values = [float(second * machine % 17) for second in range(begin, begin + 10)]
    return len(values), round(statistics.mean(values), 9), min(values), max(values), values[-1]


def test_the_archive_is_exactly_once_over_kill_9_and_a_replay_reads_it_before_the_log(
    pipeline: Pipeline, tmp_path: Path
) -> None:
    folder = TopicFolder(tmp_path / "archive", pipeline.settings.topic(topics.TELEMETRY))
    pipeline.environment |= {
        "NEWNORMAL_ARCHIVE__PATH": str(tmp_path / "archive"),
        "NEWNORMAL_ARCHIVE__EVERY": "1s",
        "NEWNORMAL_ENGINE__MAX_RECORDS": "40",
    }
    archived = produce(pipeline, range(150), 150)

    # the records of the second micro-batch are in their place, its list of messages is not
    with pipeline.log.open("ab") as log:
        dying = [sys.executable, "-m", "tests.integration.dying_archive", "3", "run", "archive"]
        ended = subprocess.run(dying, env=pipeline.environment, stdout=log, stderr=log, timeout=120, check=False)
    assert ended.returncode == -9
    assert len(list(folder.records.glob("day=*/*.parquet"))) == len(list(folder.messages.glob("*.parquet"))) + 1

    pipeline.start("archive")
    pipeline.wait("the archive", lambda: sum(ArchiveReader(folder, Telemetry).end.values()) == 124)
    pipeline.stop()
    frame = pl.read_parquet(folder.records / "**/*.parquet")
    assert frame.height == frame.unique(["time", "entity"]).height == archived
    schema = Telemetry.arrow_schema()
    log_has = {
        (message.partition(), message.offset()): decode(message.value() or b"", schema)
        for message in pipeline.read(topics.TELEMETRY)
    }
    for partition in PARTITIONS:
        rows = pa.Table.from_batches(ArchiveReader(folder, Telemetry).messages(partition, 0, 1000))
        assert rows["offset"].to_pylist() == list(range(31))
        for row in rows.to_pylist():
            table, watermark = decode(row["value"], schema)
            expected, told = log_has[partition, row["offset"]]
            assert (table.to_pylist(), watermark) == (expected.to_pylist(), told)

    # Kafka deletes what is older, which the archive has; the log goes on where the archive does not
    produce(pipeline, range(150, 240), 300)
    client = AdminClient({"bootstrap.servers": pipeline.settings.kafka.bootstrap or ""})
    for future in client.delete_records([TopicPartition(folder.topic, p, 20) for p in PARTITIONS]).values():
        future.result(30)
    replay = ("replay", "--as", "v2", "--from", iso(START + 30 * SECOND))
    pipeline.command(*replay)
    pipeline.wait("the replay's first result", lambda: bool(windows(pipeline)))
    pipeline.kill()
    pipeline.command(*replay)
    expected = {(f"m-{n}", START + begin * SECOND): window(n, begin) for n in range(12) for begin in range(30, 240, 10)}
    pipeline.wait("the replay", lambda: len(windows(pipeline)) >= len(expected))
    pipeline.stop()
    assert windows(pipeline) == expected
    assert "reads the archive before the log" in pipeline.log.read_text()
