"""Drives the sharded operator as Spark does, without Spark: map tasks, shards, state, several micro-batches."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from engine.reference import Arrival, Heartbeat, Watermark
from engine.runtime import map_side as mapside
from engine.runtime.intake import KAFKA, Intake, read
from engine.runtime.messages import Message
from engine.runtime.shard import STATS, ShardOperator
from engine.spec.job import Job
from engine.state.segments import DictSegments
from engine.testing.encoding import kafka_rows
from engine.testing.written import History, Written


@dataclass
class Driven(History):
    """One job in several shards, and what each micro-batch has written so far."""

    job: Job
    shards: int = 1
    states: list[DictSegments] = field(default_factory=list)
    messages: list[tuple[int, Message]] = field(default_factory=list)
    offset: int = 0

    def __post_init__(self) -> None:
        self.states = self.states or [DictSegments() for _ in range(self.shards)]

    def run(self, batches: Iterable[Sequence[Arrival | Watermark | Heartbeat]]) -> Driven:
        """Runs micro-batches; each partition of each micro-batch is a map task."""
        for batch in batches:
            tasks = kafka_rows(self.job, batch, self.offset)
            self.offset += sum(task.num_rows for task in tasks)
            self.kafka(tasks)
        return self

    def kafka(self, tasks: Iterable[pa.Table]) -> Driven:
        """Runs one micro-batch of Kafka messages; each table is a map task."""
        messages: list[tuple[int, Message]] = []
        for shard, (intake, state) in enumerate(zip(self._intakes(list(tasks)), self.states, strict=True)):
            runs = ShardOperator(self.job, shard, self.shards).run(intake, state)
            messages += [(shard, message) for outgoing in runs for message in outgoing]
        self.messages += [(shard, message) for shard, message in messages if message.topic != STATS]
        self.written.append(Written.of(self.job, (message for _, message in messages)))
        return self

    def _intakes(self, tasks: list[pa.Table]) -> list[Intake]:
        if self.job.direct(self.shards):
            rows = pa.concat_tables(tasks) if tasks else KAFKA.empty_table()
            rows = rows.sort_by([(name, "ascending") for name in ("topic", "partition", "offset")])
            shard = rows["partition"].to_numpy() % self.shards
            broadcast = np.isin(rows["topic"].to_numpy(zero_copy_only=False), sorted(self.job.broadcast))
            mine = [rows.filter(pa.array((shard == s) | broadcast)) for s in range(self.shards)]
            return [read(self.job, [mine[s]], s, self.states[s]) for s in range(self.shards)]
        blobs = [blob for task in tasks for blob in mapside.run(self.job, self.shards, [task])]
        return [
            mapside.joined((blob.kind, blob.value) for blob in blobs if blob.shard == shard)
            for shard in range(self.shards)
        ]

    def final(self) -> dict[tuple[Any, ...], dict[str, Any]]:
        """The last revision of each window, by key and end of the window."""
        panes: dict[tuple[Any, ...], dict[str, Any]] = {}
        for row in self.rows:
            name = (*(row[k] for k in self.job.key), row["window_end"])
            if name not in panes or row["revision"] > panes[name]["revision"]:
                panes[name] = row
        return panes
