"""Starts Spark's Python daemon before the first task needs it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from threading import Thread

import pyarrow as pa
from pyspark.sql import SparkSession


def warm_up(session: SparkSession) -> None:
    """Runs a task that does nothing, in the background.

    So the daemon imports its libraries while the queries are being planned, not after that. Whether the task succeeds
    does not matter.
    """
    Thread(target=_run, args=(session,), daemon=True, name="warm-up").start()


def _run(session: SparkSession) -> None:
    with suppress(Exception):
        session.range(1, numPartitions=1).mapInArrow(_same, "id long").collect()


def _same(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from batches
