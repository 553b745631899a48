"""The sharded operator as a Spark stateful processor: each shard is a key, and its segments are a map state."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
from pyspark.sql.streaming.stateful_processor import MapState, StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.types import BinaryType, StringType, StructField, StructType

from engine.runtime.intake import KAFKA, read
from engine.runtime.map_side import joined
from engine.runtime.shard import ShardOperator, Stats
from engine.spark.bundles import bundled
from engine.spec.job import Job
from engine.state import initial
from engine.state.segments import Segments

SEGMENT = StructType([StructField("name", StringType())])
VALUE = StructType([StructField("value", BinaryType())])


class SparkSegments(Segments):
    """Segments in Spark's map state. Each call is a round trip to the JVM, so values are read and written once."""

    def __init__(self, state: MapState) -> None:
        self.state = state

    def get(self, name: str) -> bytes | None:
        value = self.state.getValue((name,))
        return bytes(value[0]) if value is not None else None

    def put(self, name: str, value: bytes) -> None:
        self.state.updateValue((name,), (value,))

    def remove(self, name: str) -> None:
        self.state.removeKey((name,))


class ShardProcessor(StatefulProcessor):
    """Runs the `ShardOperator` of a job; all state is in Spark's state store.

    Args:
        job: The job.
        shards: Number of shards.
        checkpoint: The checkpoint, if it has an initial state (`engine.state.initial`); otherwise ``None``.
    """

    def __init__(self, job: Job, shards: int, checkpoint: Path | None = None) -> None:
        self.job, self.shards, self.checkpoint = job, shards, checkpoint

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Called by Spark once for each task."""
        self.segments = handle.getMapState("segments", SEGMENT, VALUE)

    def handleInputRows(  # type: ignore[override]  # noqa: N802
        self,
        key: Any,
        rows: Iterator[pd.DataFrame],
        timerValues: Any,  # noqa: N803
    ) -> Iterator[pd.DataFrame]:
        """Called by Spark for each shard in each micro-batch."""
        began = time.perf_counter()
        frame = pd.concat(rows)
        if self.job.direct(self.shards):
            rows_in_order = frame.sort_values(["topic", "partition", "offset"])
            table = pa.Table.from_pandas(rows_in_order[KAFKA.names], KAFKA, preserve_index=False)
            intake = read(self.job, [table], int(frame["shard"].iloc[0]))
        else:
            intake = joined(zip(frame["kind"], frame["value"], strict=True))
        decoded = time.perf_counter()
        shard, state = int(frame["shard"].iloc[0]), SparkSegments(self.segments)
        if self.checkpoint:
            initial.take_over(state, self.checkpoint, shard)
        messages = list(ShardOperator(self.job, shard, self.shards).run(intake, state))
        reading, operated = (decoded - began) * 1000, (time.perf_counter() - decoded) * 1000
        (last,) = messages[-1]
        stats = replace(Stats.of(last), map_ms=intake.map_ms, read_ms=reading, operator_ms=operated)
        messages[-1] = stats.message()
        yield bundled(messages)

    def close(self) -> None:
        """Called by Spark at the end; there is nothing to close."""
