"""Reads the state of all shards out of a checkpoint, through Spark's reader of state stores."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

from engine.spark.checkpoint_copy import relocated
from engine.spark.checkpoint_offsets import last_committed
from engine.spark.session import NEEDED
from engine.state import initial
from engine.state.segments import NOTES

Segments = dict[str, bytes]
"""The segments of one shard by name."""


def shard_states(spark: SparkSession, checkpoint: Path, shards: int) -> list[Segments]:
    """The segments of each shard after the last completed micro-batch; those of a shard without any may be empty.

    Args:
        spark: A session.
        checkpoint: The checkpoint of a job, which must not run, or a copy (`engine.spark.checkpoint_copy`).
        shards: Number of shards with which the checkpoint was made.
    """
    states: list[Segments] = [{} for _ in range(shards)]
    if last_committed(checkpoint) >= 0 and (checkpoint / "state").exists():
        relocated(checkpoint)
        for name, value in NEEDED.items():
            spark.conf.set(name, value)
        _ = spark.streams.active  # the reader asks a coordinator that exists only after this
        options = {"stateVarName": "segments", "batchId": str(last_committed(checkpoint))}
        rows = spark.read.format("statestore").options(**options).load(str(checkpoint))
        table = rows.select("partition_id", "user_map_key.name", "user_map_value.value").toArrow()
        # each shard has a partition of its own, see `engine.spark.query.shard_labels`
        for shard, name, value in zip(*(table[column].to_pylist() for column in table.column_names), strict=True):
            states[shard][name] = value
    return [kept if NOTES in kept else initial.segments(checkpoint, shard) for shard, kept in enumerate(states)]
