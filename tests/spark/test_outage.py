"""Two partitions, one of them an hour behind after an outage: we lose nothing, plain Spark drops what comes late."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from engine.aggregates import Count
from engine.formats.columnar import ColumnarDecoder
from engine.formats.dead_letters import DeadLetter
from engine.reference import Arrival, Heartbeat, Watermark
from engine.spec.job import Job
from engine.spec.output import Output
from engine.spec.source import Source
from engine.stream import Stream
from engine.testing import ABORT, RESTART, Batch, Run, TestStream, run_all
from engine.watermarks import BoundedOutOfOrderness
from engine.windows import Tumbling
from tests.engine.panes import Event, Pane, event

T0 = 1_700_000_000_000 // 300_000 * 300_000
MINUTE, HOUR = 60_000, 3_600_000
MINUTES = 90
"""How long both partitions have sent, a record a minute; the second one's messages of an hour come when it is back."""


def counting() -> Job:
    expected = (("t", 0), ("t", 1))
    watermark = BoundedOutOfOrderness("1m", idle_after="1m", expected=expected)
    source = Source({"t": ColumnarDecoder(Event)}, Event, watermark=watermark)
    stream = Stream.read(source).key_by("key").window(Tumbling("5m")).aggregate(n=Count())
    return stream.write("job", Output("out", Pane), Output("dead", DeadLetter, "json"), Output("late", Event))


def arrived(partition: int, first: int, last: int, at: int) -> list[Arrival]:
    """A record of each of some minutes, all of them at Kafka at one instant of event time or at their own."""
    times = (T0 + minute * MINUTE for minute in range(first, last))
    return [Arrival("t", partition, max(at, t), event(f"host-{partition}", t, 1.0)) for t in times]


def outage() -> list[list[Arrival]]:
    """Ten minutes of both; an hour and more of the first alone; then the second one's backlog, and the end of both."""
    back = T0 + 80 * MINUTE
    return [
        [*arrived(0, 0, 10, T0), *arrived(1, 0, 10, T0)],
        arrived(0, 10, 50, T0),
        arrived(0, 50, 80, T0),
        [*arrived(0, 80, 85, T0), *arrived(1, 10, 45, back)],
        [*arrived(0, 85, MINUTES, T0), *arrived(1, 45, MINUTES, back)],
    ]


def stream(batches: list[list[Arrival]]) -> TestStream:
    """The same as input of our job, restored in the middle; at last both partitions say that they have ended."""
    end = T0 + 10 * HOUR
    made = [Batch(tuple(batch), RESTART if number == 2 else None) for number, batch in enumerate(batches)]
    ended = Batch(tuple(Watermark("t", partition, end, end) for partition in (0, 1)))
    return TestStream(T0, partitions=2, batches=(*made, ended))


def windows(rows: list[dict[str, Any]]) -> dict[tuple[str, int], int]:
    return {(row["key"], row["window_start"]): row["n"] for row in rows}


def truth() -> dict[tuple[str, int], int]:
    """Each window of five minutes holds five records of each partition's host."""
    starts = range(T0, T0 + MINUTES * MINUTE, 5 * MINUTE)
    return {(host, start): 5 for host in ("host-0", "host-1") for start in starts}


def idle() -> TestStream:
    """The second partition has ten minutes of records and then nothing but heartbeats."""
    batches = [[*arrived(0, 0, 10, T0), *arrived(1, 0, 10, T0)]]
    made = [Batch(tuple(batch)) for batch in batches]
    for first in range(10, 60, 10):
        beat = Heartbeat("t", 1, T0 + (first + 10) * MINUTE)
        made.append(Batch((*arrived(0, first, first + 10, T0), beat), ABORT if first == 30 else None))
    return TestStream(T0, partitions=2, batches=tuple(made))


def replayed(stream: TestStream) -> TestStream:
    """The same log, read at once."""
    return replace(stream, batches=(Batch(tuple(entry for entries in stream.entries() for entry in entries)),))


RUNNERS = ["reference", "operator", pytest.param("spark", marks=pytest.mark.spark)]
Runs = tuple[Run, Run, Run]


@pytest.fixture(scope="module", params=RUNNERS)
def runs(request: pytest.FixtureRequest) -> Runs:
    """What comes of the outage, of an idle partition, and of a replay of that."""
    if request.param == "spark":
        request.getfixturevalue("spark")
    streams = stream(outage()), idle(), replayed(idle())
    one, two, three = run_all([(counting(), s) for s in streams], request.param, shards=2)
    return one, two, three


def test_with_a_watermark_a_partition_nothing_is_lost(runs: Runs) -> None:
    got = runs[0]
    assert windows(got.rows) == truth()
    assert got.late == []
    assert got.dead == []


def test_an_idle_partition_does_not_stall_the_job_and_a_replay_decides_the_same(runs: Runs) -> None:
    _, live, again = runs
    told = windows(live.rows)
    assert max(start for _, start in told) == T0 + 50 * MINUTE, "windows up to the watermark, 58 minutes"
    assert sum(n for (host, _), n in told.items() if host == "host-1") == 10
    assert windows(again.rows) == told
    assert again.watermarks[-1] == live.watermarks[-1] == T0 + 58 * MINUTE
    assert live.late == again.late == []


@pytest.mark.spark
def test_plain_spark_drops_the_second_partition(spark: SparkSession, tmp_path: Path) -> None:
    """The same micro-batches, watermark and windows by hand: its watermark follows the greatest time of all."""
    for number, batch in enumerate([*outage(), [Arrival("t", 0, T0, event("end", T0 + 20 * HOUR, 0.0))]]):
        table = pa.table({name: [entry.record[name] for entry in batch] for name in ("key", "time")})
        file = tmp_path / f"{number}.parquet"
        pq.write_table(table, file)
        os.utime(file, (number, number))  # Spark reads them in this order
    found: list[dict[str, Any]] = []
    spark.conf.set("spark.sql.streaming.noDataMicroBatches.enabled", "true")
    rows = spark.readStream.schema("key string, time bigint").option("maxFilesPerTrigger", 1).parquet(str(tmp_path))
    counts = (
        rows.withColumn("at", F.timestamp_millis("time"))
        .withWatermark("at", "1 minute")
        .groupBy("key", F.window("at", "5 minutes"))
        .agg(F.count("*").alias("n"))
        .select("key", F.unix_millis("window.start").alias("window_start"), "n")
    )

    def write(frame: DataFrame, number: int) -> None:
        found.extend(frame.toArrow().to_pylist())

    query = (
        counts.writeStream.outputMode("append")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .foreachBatch(write)
        .start()
    )
    query.awaitTermination()
    spark.conf.set("spark.sql.streaming.noDataMicroBatches.enabled", "false")
    counted = windows(found)
    hosts = {host: sum(n for (key, _), n in counted.items() if key == host) for host in ("host-0", "host-1")}
    assert hosts["host-0"] == MINUTES
    assert hosts["host-1"] == 25, "of ninety: ten from ahead of the outage, and what is in windows after minute 75"
    assert sum(p["stateOperators"][0]["numRowsDroppedByWatermark"] for p in query.recentProgress) > 0
