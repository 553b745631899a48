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
from typing import Any, Literal

import polars as pl

from engine.aggregates import AnyAggregate
from engine.errors import NewnormalError
from engine.record import Record
from engine.sources import Source
from engine.state import ShardState
from engine.time import NEVER
from engine.windows import Sliding

Row = dict[str, Any]
Key = tuple[Any, ...]


@dataclass(frozen=True)
class Progress:
    """How far a shard has come in event time and in processing time, before and after the batch at hand.

    Attributes:
        before: The watermark before the batch, epoch milliseconds.
        now: The watermark after it.
        clock_before: Processing time before the batch: the greatest arrival time seen, epoch milliseconds.
        clock: Processing time with the batch; heartbeats move it too.
    """

    before: int
    now: int
    clock_before: int = NEVER
    clock: int = NEVER


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


class Reference(ABC):
    """The specification of a processor: plain Python over all keys, slow and obvious."""

    @abstractmethod
    def take(self, records: list[Row], progress: Progress) -> tuple[list[Row], list[Row]]:
        """Takes in one micro-batch in order of arrival; returns results, and records that came too late to count."""


class ProcessorConfig(ABC):
    """What a job declares; the logic is built from it in the worker."""

    @abstractmethod
    def build(self) -> Processor:
        """The logic."""

    def reference(self) -> Reference:
        """The specification of the logic.

        Raises:
            NewnormalError: ``PROCESSOR_UNKNOWN`` if there is none.
        """
        name = type(self).__name__
        raise NewnormalError("PROCESSOR_UNKNOWN", f"{name} has no reference", accepted="a class with reference()")


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

    def reference(self) -> Reference:
        from engine.reference.windows import Windows

        return Windows(self)


@dataclass(frozen=True)
class PassThrough(ProcessorConfig):
    """Every record goes on as it came."""

    def build(self) -> Processor:
        return _PassThrough()

    def reference(self) -> Reference:
        return _PassedOn()


class _PassThrough(Processor):
    def process(self, batch: pl.DataFrame, state: ShardState, progress: Progress) -> Results:
        return Results(batch)


class _PassedOn(Reference):
    def take(self, records: list[Row], progress: Progress) -> tuple[list[Row], list[Row]]:
        return records, []


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
        logic = WindowAggregate(self.key, self.source.time, self.windows, self.lateness, aggregates)
        return replace(self, processor=logic)

    def process(self, processor: ProcessorConfig) -> Stream:
        """Own keyed logic."""
        return replace(self, processor=processor)

    def write(self, name: str, output: Output, dead: Output, late: Output | None = None) -> Job:
        """Ends in topics."""
        return Job(name, self.source, self.key, self.processor, output, dead, late)
