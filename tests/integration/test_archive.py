"""The archive on real servers: exactly once over kill -9, read by other tools, and replayed before the log."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from engine.formats.columnar import decode
from engine.spec.duration import iso
from engine.spec.errors import NewnormalError
from pipelines.contracts import topics
from pipelines.contracts.records import Telemetry
from pipelines.jobs.archive.layout import TopicFolder
from pipelines.jobs.archive.reader import ArchiveReader
from tests.integration.conftest import Pipeline
from tests.pipelines.archive.samples import MACHINES, PARTITIONS, SCHEMA, SECOND, messages, window, windows

pytestmark = [pytest.mark.servers, pytest.mark.spark, pytest.mark.slow]

START = (int(time.time()) - 7_200) // 60 * 60_000


def produce(pipeline: Pipeline, seconds: range, watermark: int) -> None:
    """Samples as the normalizer writes them; see `messages`."""
    producer, topic = (
        Producer({"bootstrap.servers": pipeline.settings.kafka.bootstrap, "log_level": 0}),
        topics.TELEMETRY,
    )
    for partition, arrived, value in messages(START, seconds, watermark):
        producer.produce(pipeline.settings.topic(topic), value, partition=partition, timestamp=arrived)
    producer.flush()


def replayed(pipeline: Pipeline) -> dict[tuple[str, int], tuple[Any, ...]]:
    """The windows of the replay; none before its topic is there."""
    try:
        return windows([message.value() or b"" for message in pipeline.read("features-v2")])
    except NewnormalError:
        return {}


def test_the_archive_is_exactly_once_over_kill_9_and_a_replay_reads_it_before_the_log(
    pipeline: Pipeline, tmp_path: Path
) -> None:
    folder = TopicFolder(tmp_path / "archive", pipeline.settings.topic(topics.TELEMETRY))
    pipeline.environment |= {
        "NEWNORMAL_ARCHIVE__PATH": str(tmp_path / "archive"),
        "NEWNORMAL_ARCHIVE__EVERY": "1s",
        "NEWNORMAL_ENGINE__MAX_RECORDS": "40",
    }
    produce(pipeline, range(150), 150)

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
    assert frame.height == frame.unique(["time", "entity"]).height == 150 * len(MACHINES)
    log_has = {
        (message.partition(), message.offset()): decode(message.value() or b"", SCHEMA)
        for message in pipeline.read(topics.TELEMETRY)
    }
    for partition in PARTITIONS:
        rows = pa.Table.from_batches(ArchiveReader(folder, Telemetry).messages(partition, 0, 1000))
        assert rows["offset"].to_pylist() == list(range(31))
        for row in rows.to_pylist():
            table, watermark = decode(row["value"], SCHEMA)
            expected, told = log_has[partition, row["offset"]]
            assert (table.to_pylist(), watermark) == (expected.to_pylist(), told)

    # Kafka deletes what is older, which the archive has; the log goes on where the archive does not
    produce(pipeline, range(150, 240), 300)
    client = AdminClient({"bootstrap.servers": pipeline.settings.kafka.bootstrap or ""})
    for future in client.delete_records([TopicPartition(folder.topic, p, 20) for p in PARTITIONS]).values():
        future.result(30)
    replay = ("replay", "--as", "v2", "--from", iso(START + 30 * SECOND))
    pipeline.process = pipeline.spawn(*replay)
    pipeline.wait("the replay's first result", lambda: bool(replayed(pipeline)))
    pipeline.kill()
    pipeline.process = pipeline.spawn(*replay)
    expected = {(f"m-{n}", START + begin * SECOND): window(n, begin) for n in MACHINES for begin in range(30, 240, 10)}
    pipeline.wait("the replay", lambda: len(replayed(pipeline)) >= len(expected))
    pipeline.stop()
    assert replayed(pipeline) == expected
    assert "reads the archive before the log" in pipeline.log.read_text()
