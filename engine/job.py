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
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import polars as pl

from engine.aggregates import AnyAggregate
from engine.aggregates.check import check
from engine.errors import NewnormalError
from engine.inputs import INPUT, checked, schema
from engine.record import Record
from engine.sources import Source
from engine.state import ShardState
from engine.steps import Apply, Columns, Explode, Step, Where, applied, row_by_row
from engine.time import NEVER
from engine.triggers import ACCUMULATING, Accumulation, AfterWatermark, Trigger
from engine.windows import Evictor, Policy, Sliding, Window

if TYPE_CHECKING:
    from engine.explain import Plan
    from engine.ordered.sides import TwoSided
    from engine.ordered.windows import SequenceWindows

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
class Held:
    """What a processor holds in its state; ``None`` where it does not tell.

    Attributes:
        keys: Keys; of windows made of panes, the most in one pane.
        open: Windows, of any key, that have not ended.
    """

    keys: int | None = None
    open: int | None = None


@dataclass(frozen=True)
class Results:
    """What a processor returns for a batch: new records, input that came too late to count, and what it holds."""

    records: pl.DataFrame
    late: pl.DataFrame | None = None
    held: Held = Held()


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

    def bound(self, key: tuple[str, ...], time: str, loops: tuple[int, ...] = ()) -> ProcessorConfig:
        """The same on a stream with this key and event-time column; ``loops``: its inputs that hold no watermark."""
        return self

    def result_time(self, time: str) -> str:
        """The event-time column of the results; ``time`` is that of the input."""
        return time

    def describe(self) -> list[tuple[str, str]]:
        """What it does and keeps, in its user's terms: lines of `Job.explain`."""
        from engine.explain import in_words

        return in_words(self)


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

    def describe(self) -> list[tuple[str, str]]:
        from engine.explain import windows

        return windows(self)

    def result_time(self, time: str) -> str:
        return "window_end"


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
class Transform(ProcessorConfig):
    """Steps on the results of an operator."""

    steps: tuple[Step, ...]

    def build(self) -> Processor:
        return _Transformer(self.steps)

    def reference(self) -> Reference:
        return _RowTransformer(self.steps)


@dataclass(frozen=True)
class _Transformer(Processor):
    steps: tuple[Step, ...]

    def process(self, batch: pl.DataFrame, state: ShardState, progress: Progress) -> Results:
        return Results(applied(self.steps, batch) if batch.height else batch)


@dataclass(frozen=True)
class _RowTransformer(Reference):
    steps: tuple[Step, ...]

    def take(self, records: list[Row], progress: Progress) -> tuple[list[Row], list[Row]]:
        return row_by_row(self.steps, records), []


@dataclass(frozen=True)
class Chain(ProcessorConfig):
    """Operators one after the other in one shard: the results of each are the input of the next, at the same watermark.

    What comes too late for any of them goes to the late topic, in the form that it then has.
    """

    parts: tuple[ProcessorConfig, ...]

    def build(self) -> Processor:
        return _Chained(tuple(part.build() for part in self.parts))

    def reference(self) -> Reference:
        return _ChainedReference(tuple(part.reference() for part in self.parts))

    def result_time(self, time: str) -> str:
        for part in self.parts:
            time = part.result_time(time)
        return time

    def describe(self) -> list[tuple[str, str]]:
        numbered = ((number, part.describe()) for number, part in enumerate(self.parts, 1))
        return [(f"{number}. {term}", meaning) for number, lines in numbered for term, meaning in lines]


@dataclass(frozen=True)
class _Chained(Processor):
    parts: tuple[Processor, ...]

    def process(self, batch: pl.DataFrame, state: ShardState, progress: Progress) -> Results:
        late, held = [], []
        for number, part in enumerate(self.parts):
            results = part.process(batch, state.scope(str(number)), progress)
            batch = results.records
            late += [results.late] if results.late is not None and results.late.height else []
            held.append(results.held)
        keys = [h.keys for h in held if h.keys is not None]
        most = Held(max(keys, default=None), next((h.open for h in held if h.open is not None), None))
        return Results(batch, pl.concat(late, how="diagonal_relaxed") if late else None, most)


@dataclass(frozen=True)
class _ChainedReference(Reference):
    parts: tuple[Reference, ...]

    def take(self, records: list[Row], progress: Progress) -> tuple[list[Row], list[Row]]:
        late: list[Row] = []
        for part in self.parts:
            records, missed = part.take(records, progress)
            late += missed
        return records, late


@dataclass(frozen=True)
class Output:
    """A topic that a job writes, partitioned by the first key column."""

    topic: str
    record: type[Record]
    format: Literal["columnar", "json"] = "columnar"
    partitions: int = 4


@dataclass(frozen=True)
class Job:
    """A whole job.

    Raises:
        NewnormalError: ``INPUTS_CLASH`` if its inputs cannot be read together.
    """

    name: str
    inputs: tuple[Source, ...]
    key: tuple[str, ...]
    processor: ProcessorConfig
    output: Output
    dead: Output
    late: Output | None = None

    def __post_init__(self) -> None:
        checked(self.inputs)

    @property
    def source(self) -> Source:
        """The first input; for most jobs the only one."""
        return self.inputs[0]

    @property
    def time(self) -> str:
        """The event-time column of the inputs."""
        return self.source.time

    @property
    def topics(self) -> list[str]:
        """All topics that are read."""
        return list(dict.fromkeys(topic for source in self.inputs for topic in source.formats))

    def direct(self, shards: int) -> bool:
        """Whether messages of all inputs go to their shard as they are: partitioned by the first key column."""
        by_key = all(source.record.identity[:1] == self.key[:1] for source in self.inputs)
        return by_key and all(source.direct(shards) for source in self.inputs)

    def explain(self, measured: Mapping[str, Any] | None = None, shards: int = 2) -> Plan:
        """The plan in its user's terms; ``print(job.explain())``."""
        from engine.explain import explain

        return explain(self, measured, shards)


@dataclass(frozen=True)
class Stream:
    """Builder of a `Job`; each call returns a new value."""

    sources: tuple[Source, ...]
    key: tuple[str, ...] = ()
    windows: Window | SequenceWindows | None = None
    lateness: str = "0s"
    when: Trigger | None = None
    panes: Accumulation = ACCUMULATING
    evict: Evictor | None = None
    processor: ProcessorConfig = PassThrough()

    @classmethod
    def read(cls, source: Source) -> Stream:
        """Starts from a source."""
        return cls((source,))

    @property
    def source(self) -> Source:
        """The first input."""
        return self.sources[0]

    @property
    def time(self) -> str:
        """The event-time column at this point."""
        return self.processor.result_time(self.source.time)

    def merge(self, other: Stream) -> Stream:
        """The records of both; columns of one name are one column."""
        return replace(self, sources=(*self._plain("merge"), *other._plain("merge")))

    def loop(self, source: Source) -> Stream:
        """Reads a topic that the job itself feeds; the watermark does not wait for it, and nothing in it is late."""
        return self.merge(Stream.read(replace(source, holds=False)))

    def join(self, other: Stream, how: TwoSided) -> Stream:
        """Two streams by the key: `IntervalJoin`, `WindowJoin`, `Correlation`, or `Broadcast` of the other one."""
        left, right = self._plain("join"), other._plain("join")
        names = [[name for name in schema(side).names if name != INPUT] for side in (left, right)]
        right = tuple(replace(source, broadcast=how.wide) for source in right)
        both = replace(self, sources=(*left, *right))
        return both.process(how.sided(len(left), *names))

    def _plain(self, what: str) -> tuple[Source, ...]:
        if isinstance(self.processor, PassThrough):
            return self.sources
        raise NewnormalError(
            "STREAM_ORDER", f"{what} after an operator", "stream", f"{what} first, or write a topic and read that"
        )

    def filter(self, condition: str) -> Stream:
        """Keeps the records for which a SQL condition is true."""
        return self._step(Where(condition))

    def map(self, function: Callable[[Any], Any] | None = None, arrow: bool = False, **columns: str) -> Stream:
        """Sets columns to SQL expressions, or what a function over columns makes of each record (see `Apply`)."""
        made = self._step(Apply(function, arrow)) if function else self
        return made._step(Columns(tuple(columns.items()))) if columns else made

    def select(self, *names: str, **columns: str) -> Stream:
        """Only these columns, and SQL expressions as others."""
        return self._step(Columns((*((name, f'"{name}"') for name in names), *columns.items()), only=True))

    def flat_map(self, what: str | Callable[[Any], Any], arrow: bool = False) -> Stream:
        """A record for each element of a list column, or any number of them by a function (see `Apply`)."""
        return self._step(Explode(what) if isinstance(what, str) else Apply(what, arrow))

    def _step(self, step: Step) -> Stream:
        """Of input: done where it is decoded; of results: in the shard."""
        if not isinstance(self.processor, PassThrough):
            return self._then(Transform((step,)))
        return replace(self, sources=tuple(replace(s, steps=(*s.steps, step)) for s in self.sources))

    def _then(self, processor: ProcessorConfig) -> Stream:
        if isinstance(self.processor, PassThrough):
            return replace(self, processor=processor)
        before = self.processor.parts if isinstance(self.processor, Chain) else (self.processor,)
        return replace(self, processor=Chain((*before, processor)))

    def key_by(self, *columns: str) -> Stream:
        """Keys by columns; the first one decides shard and partition."""
        return replace(self, key=columns)

    def window(self, window: Window | SequenceWindows, allowed_lateness: str = "0s") -> Stream:
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
        if not isinstance(self.windows, Window):
            return self.process(self.windows.over(aggregates))
        logic = WindowAggregate(
            self.key, self.time, self.windows, self.lateness, aggregates, self.when, self.panes, self.evict
        )
        return self._then(logic)

    def process(self, processor: ProcessorConfig) -> Stream:
        """Keyed logic: own, or an operator in event-time order."""
        loops = tuple(i for i, source in enumerate(self.sources) if not source.holds)
        return self._then(processor.bound(self.key, self.time, loops))

    def write(self, name: str, output: Output, dead: Output, late: Output | None = None) -> Job:
        """Ends in topics."""
        return Job(name, self.sources, self.key, self.processor, output, dead, late)
