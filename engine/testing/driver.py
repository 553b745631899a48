"""Drives the sharded operator as Spark does, without Spark: map tasks, shards, state, several micro-batches."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

import numpy as np
import pyarrow as pa

from engine import columnar
from engine.heartbeat import HEARTBEAT
from engine.job import Job
from engine.operator import mapside
from engine.operator.intake import KAFKA, Intake, read
from engine.operator.shard import STATS, Message, ShardOperator
from engine.reference import Arrival, Silence, Vouched
from engine.state import DictSegments


@dataclass
class Driven:
    """One job in some shards; what it has written so far."""

    job: Job
    shards: int = 1
    states: list[DictSegments] = field(default_factory=list)
    rows: list[dict[str, Any]] = field(default_factory=list)
    late: list[dict[str, Any]] = field(default_factory=list)
    dead: list[dict[str, Any]] = field(default_factory=list)
    watermarks: list[int] = field(default_factory=list)
    messages: list[tuple[int, Message]] = field(default_factory=list)
    offset: int = 0

    def __post_init__(self) -> None:
        self.states = self.states or [DictSegments() for _ in range(self.shards)]

    def run(self, batches: Iterable[Sequence[Arrival | Vouched | Silence]]) -> Driven:
        """Takes in micro-batches; each partition of each is a map task."""
        for batch in batches:
            by_partition: dict[tuple[str, int], list[Arrival | Vouched | Silence]] = {}
            for entry in batch:
                by_partition.setdefault((entry.topic, entry.partition), []).append(entry)
            self.kafka([self._messages(entries) for _, entries in sorted(by_partition.items())])
        return self

    def kafka(self, tasks: Iterable[pa.Table]) -> Driven:
        """Takes in one micro-batch of Kafka messages, a table a map task."""
        for shard, (intake, state) in enumerate(zip(self._intakes(list(tasks)), self.states, strict=True)):
            for message in ShardOperator(self.job, shard, self.shards).run(intake, state):
                self._take(shard, message)
        return self

    def _intakes(self, tasks: list[pa.Table]) -> list[Intake]:
        if self.job.direct(self.shards):
            rows = pa.concat_tables(tasks) if tasks else KAFKA.empty_table()
            shard = rows["partition"].to_numpy() % self.shards
            wide = np.isin(rows["topic"].to_numpy(zero_copy_only=False), sorted(self.job.broadcast))
            return [read(self.job, [rows.filter(pa.array((shard == s) | wide))], s) for s in range(self.shards)]
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

    def _messages(self, entries: list[Arrival | Vouched | Silence]) -> pa.Table:
        topic = entries[0].topic
        record = next(source.record for source in self.job.inputs if topic in source.formats)
        schema = record.arrow_schema()
        rows = []
        for (kind, arrived), group in groupby(entries, lambda e: (type(e), e.arrived)):
            some = list(group)
            records = [e.record for e in some if isinstance(e, Arrival)]
            vouched = max((e.watermark for e in some if isinstance(e, Vouched)), default=None)
            value = columnar.encode(pa.Table.from_pylist(records, schema=schema), vouched)
            value = HEARTBEAT if kind is Silence else value
            rows.append((value, some[0].topic, some[0].partition, self.offset, arrived))
            self.offset += 1
        return pa.Table.from_pylist([dict(zip(KAFKA.names, row, strict=True)) for row in rows], schema=KAFKA)

    def _take(self, shard: int, message: Message) -> None:
        job = self.job
        if message.topic == STATS:
            if shard == 0:
                self.watermarks.append(json.loads(message.value)["watermark"])
            return
        self.messages.append((shard, message))
        if message.topic == job.output.topic and job.output.format == "json":
            self.rows.append(json.loads(message.value))
        elif message.topic == job.output.topic:
            self.rows += columnar.decode(message.value, job.output.record.arrow_schema())[0].to_pylist()
        elif job.late and message.topic == job.late.topic:
            self.late += columnar.decode(message.value, job.late.record.arrow_schema())[0].to_pylist()
        elif message.topic == job.dead.topic:
            self.dead.append(json.loads(message.value))
