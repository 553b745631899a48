"""A new checkpoint that begins with the state of another one goes on where that one ended."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from engine.kafka.continuation import identity
from engine.spark.checkpoint_files import states
from engine.spark.checkpoint_state import shard_states
from engine.state import initial
from engine.testing import TestStream, run
from engine.windows import Tumbling
from tests.engine.panes import event, job
from tests.spark.one_batch import SHARDS, one_batch

pytestmark = pytest.mark.spark
T0 = 1_700_000_000_000
JOB = job(Tumbling("10s"))
STREAM = (
    TestStream(T0)
    .add(event("a", T0 + 1000, 1.0), event("b", T0 + 2000, 2.0), event("c", T0 + 3000, 4.0))
    .add(event("a", T0 + 4000, 8.0))
    .add(event("b", T0 + 5000, 16.0))
    .advance_watermark("10s")
)
IDENTITY = "a5f1f0a4-8d0e-4f5c-9f0e-2c0b3a3b0f57"


def test_a_checkpoint_with_an_initial_state_goes_on_with_it_and_takes_it_over_once(
    spark: SparkSession, tmp_path: Path
) -> None:
    before, after = tmp_path / "before", tmp_path / "after"
    before.mkdir()
    after.mkdir()
    first, second = tmp_path / "first", tmp_path / "second"
    rows = [row for batch in STREAM.batches[:3] for row in one_batch(spark, JOB, before, batch, first, begun=False)]
    initial.write(second, shard_states(spark, first, SHARDS), {("t", 0): 7})
    assert states(first, SHARDS) == shard_states(spark, first, SHARDS), "what is read without Spark is what Spark reads"
    # a savepoint is restored with an identity, by which the ledger knows the checkpoint
    (second / "metadata").write_text(json.dumps({"id": IDENTITY}))
    # each micro-batch is a new start of the query: the second one must not take the initial state over again
    rows += [row for batch in STREAM.batches[3:] for row in one_batch(spark, JOB, after, batch, second, begun=True)]
    wanted = {row["key"]: row["sum"] for row in run(JOB, STREAM, "reference").rows}
    assert wanted == {"a": 9.0, "b": 18.0, "c": 4.0}
    assert {row["key"]: row["sum"] for row in rows} == wanted
    assert len(rows) == 3
    assert identity(second) == IDENTITY
    assert initial.offsets(second) == {("t", 0): 7}
