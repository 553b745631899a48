"""What a Python worker does with the rows of one shard in one micro-batch."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.streaming.stateful_processor import MapState

from engine.kafka import shard_output
from engine.runtime.intake import KAFKA, Intake, read
from engine.runtime.map_side import joined
from engine.runtime.messages import Outgoing
from engine.runtime.portions import portions
from engine.runtime.shard import ShardOperator, Stats
from engine.spark.bundles import bundled
from engine.spark.shared_memory import SharedMemory
from engine.spec.job import Job
from engine.state import initial
from engine.state.segments import Segments


class SparkSegments(Segments):
    """Segments in Spark's map state. Each call is a round trip to the JVM.

    A copy is kept of a large segment that is read, and of what is then written in its place, as the next micro-batch
    will read it too. Most parts of a log are never read: no copy of them is kept.

    Args:
        state: The shard's state.
        copies: Copies of large segments, which save the round trip.
    """

    def __init__(self, state: MapState, copies: SharedMemory) -> None:
        self.state, self.copies, self.kept = state, copies, copies.unpacked
        self._read: set[str] = set()

    def get(self, name: str, digest: str = "") -> bytes | None:
        self._read.add(name)
        if digest and (copy := self.copies.get(name, digest)) is not None:
            return copy
        row = self.state.getValue((name,))
        value = bytes(row[0]) if row is not None else None
        if digest and value is not None:
            self.copies.put(name, value, digest)
        return value

    def put(self, name: str, value: bytes, digest: str = "") -> None:
        self.state.updateValue((name,), (value,))
        if digest and name in self._read:
            self.copies.put(name, value, digest)

    def remove(self, name: str) -> None:
        self.state.removeKey((name,))
        self.copies.remove(name)


def processed(
    job: Job,
    shards: int,
    checkpoint: Path | None,
    memory: Path | None,
    state: MapState,
    rows: Iterator[pd.DataFrame],
    place: shard_output.Place | None = None,
) -> pd.DataFrame:
    """Processes the rows of one shard; returns its bundled messages, or only its statistics if it writes them itself.

    The messages are written before Spark commits the state: if the task fails in between, Spark repeats it from the old
    state, and the ledger says that they are written.

    Args:
        job: The job.
        shards: Number of shards.
        checkpoint: The checkpoint, if it has an initial state; otherwise ``None``.
        memory: Folder for copies of large segments, see `engine.spark.shared_memory`; ``None``: there are none.
        state: The shard's state.
        rows: Kafka rows, or blobs of the map side, with the number of the shard.
        place: Where the shard writes by itself; ``None``: Spark takes its messages to the driver.
    """
    since = time.perf_counter()
    frame = pd.concat(rows)
    shard = int(frame["shard"].iloc[0])
    segments = SparkSegments(state, SharedMemory(memory, shard))
    if checkpoint:
        initial.take_over(segments, checkpoint, shard)
    operator, messages, done = ShardOperator(job, shard, shards), list[Outgoing](), list[Stats]()
    for intake in _intakes(job, shards, shard, frame, segments):
        decoded = time.perf_counter()
        *output, stats = operator.run(intake, segments)
        messages += output
        (counts,) = stats
        now = time.perf_counter()
        took = {"read_ms": (decoded - since) * 1000, "operator_ms": (now - decoded) * 1000}
        done.append(replace(Stats.of(counts), map_ms=intake.map_ms, **took))  # type: ignore[arg-type]
        since = now
    if place is not None:
        _write(place, shard, messages)
        messages = []
    return bundled([*messages, Stats.of_all(done).message()])


def _intakes(job: Job, shards: int, shard: int, frame: pd.DataFrame, state: Segments) -> Iterator[Intake]:
    """The input, in portions if it is large and comes as Kafka's messages."""
    if job.direct(shards):
        rows_in_order = frame.sort_values(["topic", "partition", "offset"])
        table = pa.Table.from_pandas(rows_in_order[KAFKA.names], KAFKA, preserve_index=False)
        yield from (read(job, [portion], shard, state) for portion in portions(table))
    else:
        yield joined(zip(frame["kind"], frame["value"], strict=True))


def _write(place: shard_output.Place, shard: int, messages: list[Outgoing]) -> None:
    """Writes the messages of a shard."""
    context = TaskContext.get()
    assignment = context.getLocalProperty(shard_output.ASSIGNMENT) if context else None
    assert assignment is not None, "the driver says which micro-batch it is"
    shard_output.write(place, shard_output.Assignment.of(assignment), shard, messages)
