"""Why a query failed is told by the root cause's own line, wherever in Spark it happened."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

from engine.spark.failure import reason

pytestmark = pytest.mark.spark


def in_a_worker(frame: DataFrame) -> DataFrame:
    """A plan whose Python worker fails."""

    def fail(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        raise ValueError("no machine of that name\nand more of it")
        yield from batches

    return frame.mapInArrow(fail, "value long")


def in_the_driver(_frame: DataFrame, _batch: int) -> None:
    raise OSError("the disk is full")


def failed(frame: DataFrame, write: object, folder: Path) -> str:
    query = frame.writeStream.option("checkpointLocation", str(folder)).foreachBatch(write).start()
    with suppress(StreamingQueryException):
        query.awaitTermination(120)
    assert not query.isActive
    return reason(query)


def test_the_reason_is_the_line_of_the_root_cause(spark: SparkSession, tmp_path: Path) -> None:
    source = spark.readStream.format("rate").load().select("value")
    assert failed(in_a_worker(source), lambda frame, _: frame.collect(), tmp_path / "1") == (
        "ValueError: no machine of that name"
    )
    assert failed(source, in_the_driver, tmp_path / "2") == "OSError: the disk is full"
    lost = spark.readStream.format("rate").load().selectExpr("raise_error('no such place') as value")
    assert "no such place" in failed(lost, lambda frame, _: frame.collect(), tmp_path / "3")
