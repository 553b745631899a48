"""A job as a declarative, immutable value: what is read, how it is keyed, what is computed, where it goes.

    Stream.read(source)
      .key_by("entity", "metric")
      .window(Sliding("60s", every="10s"), allowed_lateness="10m")
      .aggregate(count=Count(), mean=Mean("value"))
      .write("extractor", Output("features", Features), late=Output("features.late", Telemetry))

The same value is run by the reference interpreter and by the sharded operator on Spark.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Literal

import polars as pl

from engine.aggregates import AnyAggregate
from engine.aggregates.check import check
from engine.record import Record
from engine.sources import Source
from engine.state import ShardState
from engine.windows import Sliding


@dataclass(frozen=True)
class Progress:
    """Event time of a shard: the watermark before and after the batch at hand."""

    before: int
    now: int


@dataclass(frozen=True)
class Results:
    """What a processor returns for a batch: new records, and input that came too late to count."""

    records: pl.DataFrame
    late: pl.DataFrame | None = None


class Processor(ABC):
    """Keyed, stateful logic of one shard, vectorised over the shard's keys."""

    @abstractmethod
    def process(self, batch: pl.DataFrame, state: ShardState, progress: Progress) -> Results:
        """Takes in a batch (any order, maybe empty) and returns what is final at the watermark."""


class ProcessorConfig(ABC):
    """What a job declares; the logic is built from it in the worker."""

    @abstractmethod
    def build(self) -> Processor:
        """The logic."""


@dataclass(frozen=True)
class WindowAggregate(ProcessorConfig):
    """Aggregates over event-time windows of each key."""

    key: tuple[str, ...]
    time: str
    window: Sliding
    allowed_lateness: str
    aggregates: dict[str, AnyAggregate]

    def build(self) -> Processor:
        from engine.operator.window import WindowProcessor

        return WindowProcessor(self)


@dataclass(frozen=True)
class PassThrough(ProcessorConfig):
    """Every record goes on as it came."""

    def build(self) -> Processor:
        return _PassThrough()


class _PassThrough(Processor):
    def process(self, batch: pl.DataFrame, state: ShardState, progress: Progress) -> Results:
        return Results(batch)


@dataclass(frozen=True)
class Output:
    """A topic that a job writes, partitioned by the first key column."""

    topic: str
    record: type[Record]
    format: Literal["columnar", "json"] = "columnar"
    partitions: int = 4


@dataclass(frozen=True)
class Job:
    """A whole job."""

    name: str
    source: Source
    key: tuple[str, ...]
    processor: ProcessorConfig
    output: Output
    dead: Output
    late: Output | None = None


@dataclass(frozen=True)
class Stream:
    """Builder of a `Job`; each call returns a new value."""

    source: Source
    key: tuple[str, ...] = ()
    windows: Sliding | None = None
    lateness: str = "0s"
    processor: ProcessorConfig = PassThrough()

    @classmethod
    def read(cls, source: Source) -> Stream:
        """Starts from a source."""
        return cls(source)

    def key_by(self, *columns: str) -> Stream:
        """Keys by columns; the first one decides shard and partition."""
        return replace(self, key=columns)

    def window(self, window: Sliding, allowed_lateness: str = "0s") -> Stream:
        """Groups into event-time windows; a late record within the lateness revises its window."""
        return replace(self, windows=window, lateness=allowed_lateness)

    def aggregate(self, **aggregates: AnyAggregate) -> Stream:
        """One result column an aggregate."""
        if self.windows is None:
            raise TypeError("aggregate() needs window() before it")
        check(aggregates)
        logic = WindowAggregate(self.key, self.source.time, self.windows, self.lateness, aggregates)
        return replace(self, processor=logic)

    def process(self, processor: ProcessorConfig) -> Stream:
        """Own keyed logic."""
        return replace(self, processor=processor)

    def write(self, name: str, output: Output, dead: Output, late: Output | None = None) -> Job:
        """Ends in topics."""
        return Job(name, self.source, self.key, self.processor, output, dead, late)
