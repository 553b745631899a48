"""The archive as the input of a job on Spark."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from engine.runtime.intake import KAFKA
from engine.spark.query import collected, operated
from pipelines.contracts.records import Telemetry
from pipelines.contracts.settings import load
from pipelines.history.writing import HistoryWriter
from pipelines.jobs.archive.layout import TopicFolder
from pipelines.jobs.archive.reader import ArchiveReader
from pipelines.jobs.archive.source import archive_rows
from pipelines.jobs.archive.writer import ArchiveWriter
from pipelines.jobs.extractor import extractor
from tests.pipelines.archive.samples import MACHINES, SCHEMA, SECOND, messages, value, window, windows

START = 1_795_305_600_000  # 2026-11-22


@pytest.mark.spark
@pytest.mark.parametrize(("imported", "most"), [(False, 24), (True, 8)])
def test_a_job_over_the_archive_in_small_micro_batches_gives_the_windows_of_the_log(
    spark: SparkSession, tmp_path: Path, imported: bool, most: int
) -> None:
    """The first part is what the log had, or imported history, whose offsets are negative."""
    folder, ends = TopicFolder(tmp_path / "archive", "telemetry"), dict.fromkeys(range(4), 0)
    writer = ArchiveWriter(folder, Telemetry)
    if imported:
        history(folder, ends, range(-60, 30))
    for number, (seconds, watermark) in enumerate([(range(-60, 30), 30), (range(30, 60), 90)][imported:]):
        before, rows = dict(ends), []
        for partition, arrived, content in messages(START, seconds, watermark):
            place = {"topic": "telemetry", "partition": partition, "offset": ends[partition], "arrived": arrived}
            rows.append({"value": content, **place})
            ends[partition] += 1
        writer.write(f"a-{number}", pa.Table.from_pylist(rows, KAFKA), before, dict(ends))

    reader, written, batches = ArchiveReader(folder, Telemetry), list[bytes](), list[int]()
    assert (min(reader.start.values()) < 0) == imported

    def write(frame: DataFrame, batch: int) -> None:
        batches.append(batch)
        written.extend(m.value for some in collected(frame) if some.topic == "features" for m in some)

    start, end = ({"telemetry": {str(p): offset for p, offset in places.items()}} for places in (reader.start, ends))
    frame = operated(archive_rows(spark, {"telemetry": reader}, start, end, most), extractor(load()), 2)
    query = frame.writeStream.outputMode("update").option("checkpointLocation", str(tmp_path / "checkpoint"))
    query.foreachBatch(write).trigger(availableNow=True).start().awaitTermination()
    assert windows(written) == {
        (f"m-{n}", START + begin * SECOND): window(n, begin) for n in MACHINES for begin in range(-60, 60, 10)
    }
    assert len(batches) > 3


def history(folder: TopicFolder, ends: dict[int, int], seconds: range) -> None:
    """Imports samples before the first offsets of the log, in slices of twenty seconds, the newest first."""
    writer = HistoryWriter(folder, ends, START + seconds.stop * SECOND - 5_001, "test")
    for end in range(seconds.stop, seconds.start, -20):
        begin = max(seconds.start, end - 20)
        rows = [
            {"time": START + s * SECOND, "entity": f"m-{n}", "metric": "cpu", "value": value(n, s), "kind": "gauge"}
            for n in MACHINES
            for s in range(begin, end)
        ]
        writer.write(START + begin * SECOND, START + end * SECOND, pa.Table.from_pylist(rows, SCHEMA))
