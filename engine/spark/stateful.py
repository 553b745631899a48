"""The sharded operator as a Spark stateful processor: each shard is a key, and its segments are a map state.

At the first micro-batch of each query Spark starts a Python process only to ask the processor which state it has. So
this module imports little, and the job stays packed until there is something to process: otherwise each query would
import all libraries once more, which takes most of a start on a small machine.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark import cloudpickle
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.types import BinaryType, StringType, StructField, StructType

if TYPE_CHECKING:
    import pandas as pd

    from engine.kafka.shard_output import Place
    from engine.spec.job import Job

SEGMENT = StructType([StructField("name", StringType())])
VALUE = StructType([StructField("value", BinaryType())])


class ShardProcessor(StatefulProcessor):
    """Runs the `engine.runtime.shard.ShardOperator` of a job; all state is in Spark's state store.

    Args:
        job: The job.
        shards: Number of shards.
        checkpoint: The checkpoint, if it has an initial state (`engine.state.initial`); otherwise ``None``.
        memory: Folder for copies of large segments, see `engine.spark.shared_memory`; ``None``: there are none.
        place: Where the shards write by themselves; ``None``: their messages go on in Spark.
    """

    def __init__(
        self,
        job: Job,
        shards: int,
        checkpoint: Path | None = None,
        memory: Path | None = None,
        place: Place | None = None,
    ) -> None:
        self.packed = cloudpickle.dumps((job, place))  # type: ignore[no-untyped-call]
        self.shards, self.checkpoint, self.memory = shards, checkpoint, memory

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Called by Spark once for each task, and once before the first task of a query."""
        self.segments = handle.getMapState("segments", SEGMENT, VALUE)

    def handleInputRows(  # type: ignore[override]  # noqa: N802
        self,
        key: Any,
        rows: Iterator[pd.DataFrame],
        timerValues: Any,  # noqa: N803
    ) -> Iterator[pd.DataFrame]:
        """Called by Spark for each shard in each micro-batch."""
        from engine.spark.shard_task import processed  # noqa: PLC0415  see the module's docstring

        job, place = pickle.loads(self.packed)
        yield processed(job, self.shards, self.checkpoint, self.memory, self.segments, rows, place)

    def close(self) -> None:
        """Called by Spark at the end; there is nothing to close."""
