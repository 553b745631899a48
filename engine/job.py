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
from engine.aggregates.check import check
from engine.errors import NewnormalError
from engine.record import Record
from engine.sources import Source
from engine.state import ShardState
from engine.time import NEVER
from engine.triggers import ACCUMULATING, Accumulation, AfterWatermark, Trigger
from engine.windows import Evictor, Policy, Sliding, Window

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
    """Aggregates over windows of each key.

    Attributes:
        trigger: When windows fire; without one, at the watermark and for late records. Aligned windows without a
            trigger share panes and have no columns but ``revision`` to tell their results apart.
        panes: How the results of one window relate.
        evict: Which records of a window count; without one, all.
    """

    key: tuple[str, ...]
    time: str
    window: Window
    allowed_lateness: str
    aggregates: dict[str, AnyAggregate]
    trigger: Trigger | None = None
    panes: Accumulation = ACCUMULATING
    evict: Evictor | None = None

    @property
    def shared(self) -> bool:
        """Whether windows are put together from shared panes: aligned ones that fire at the watermark."""
        plain = self.trigger is None and self.evict is None and self.panes == ACCUMULATING
        return plain and isinstance(self.window, Sliding) and not self.window.offset_ms

    @property
    def sliding(self) -> Sliding:
        """The windows, if they are put together from panes."""
        assert isinstance(self.window, Sliding)
        return self.window

    @property
    def fires(self) -> Trigger:
        """When windows fire."""
        own = self.window.trigger if isinstance(self.window, Policy) else AfterWatermark()
        return self.trigger or own

    @property
    def evictor(self) -> Evictor | None:
        """Which records count."""
        return self.evict or (self.window.evict if isinstance(self.window, Policy) else None)

    def build(self) -> Processor:
        from engine.operator.general import GeneralWindows
        from engine.operator.window import WindowProcessor

        return WindowProcessor(self) if self.shared else GeneralWindows(self)

    def reference(self) -> Reference:
        from engine.reference.panes import Panes
        from engine.reference.windows import Windows

        return Windows(self) if self.shared else Panes(self)


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
    windows: Window | None = None
    lateness: str = "0s"
    when: Trigger | None = None
    panes: Accumulation = ACCUMULATING
    evict: Evictor | None = None
    processor: ProcessorConfig = PassThrough()

    @classmethod
    def read(cls, source: Source) -> Stream:
        """Starts from a source."""
        return cls(source)

    def key_by(self, *columns: str) -> Stream:
        """Keys by columns; the first one decides shard and partition."""
        return replace(self, key=columns)

    def window(self, window: Window, allowed_lateness: str = "0s") -> Stream:
        """Groups into windows; a late record within the lateness revises its window."""
        return replace(self, windows=window, lateness=allowed_lateness)

    def trigger(
        self,
        trigger: Trigger,
        panes: Accumulation = ACCUMULATING,
        evict: Evictor | None = None,
        allowed_lateness: str | None = None,
    ) -> Stream:
        """Says when windows give results, how these relate, and which records of a window count."""
        lateness = self.lateness if allowed_lateness is None else allowed_lateness
        return replace(self, when=trigger, panes=panes, evict=evict, lateness=lateness)

    def aggregate(self, **aggregates: AnyAggregate) -> Stream:
        """One result column an aggregate."""
        if self.windows is None:
            raise TypeError("aggregate() needs window() before it")
        check(aggregates)
        logic = WindowAggregate(
            self.key, self.source.time, self.windows, self.lateness, aggregates, self.when, self.panes, self.evict
        )
        return replace(self, processor=logic)

    def process(self, processor: ProcessorConfig) -> Stream:
        """Own keyed logic."""
        return replace(self, processor=processor)

    def write(self, name: str, output: Output, dead: Output, late: Output | None = None) -> Job:
        """Ends in topics."""
        return Job(name, self.source, self.key, self.processor, output, dead, late)
