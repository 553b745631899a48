"""The builder of a job: what is read, how it is keyed, what is computed, where it goes.

    Stream.read(source)
      .key_by("entity", "metric")
      .window(Sliding("60s", every="10s"), allowed_lateness="10m")
      .aggregate(count=Count(), mean=Mean("value"))
      .write("extractor", Output("features", Features), late=Output("features.late", Telemetry))

The same value is run by the reference interpreter and by the sharded operator on Spark.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from engine.aggregates import AnyAggregate
from engine.aggregates.check import check
from engine.operators.chain import Chain, PassThrough, Transform
from engine.operators.windows import WindowAggregate
from engine.spec.errors import NewnormalError
from engine.spec.inputs import INPUT, schema
from engine.spec.job import Job
from engine.spec.operator import Operator
from engine.spec.output import Output
from engine.spec.source import Source, TimeDomain
from engine.spec.steps import Apply, Columns, Explode, Step, Where
from engine.triggers import ACCUMULATING, Accumulation, Trigger
from engine.windows import Evictor, Window

if TYPE_CHECKING:
    from engine.operators.sequence_windows import SequenceWindows
    from engine.operators.two_sided import TwoSided


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
    processor: Operator = field(default_factory=PassThrough)

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

    def timed(self, clock: TimeDomain, column: str | None = None) -> Stream:
        """Chooses the time that windows, triggers and operators work on; event time if nothing is said.

        Args:
            clock: ``"event"``: what the records say; ``"ingestion"``: a record's arrival at Kafka; ``"processing"``:
                the shard's clock when it takes the record in: its arrival, or the greatest one seen ahead of the
                micro-batch if that is later.
            column: The column that holds it, for ingestion and processing time a new one or one that is replaced;
                ``None``: ``arrived``, ``processed``, or that of the source.
        """
        names = {"event": self.source.time, "ingestion": "arrived", "processing": "processed"}
        return replace(self, sources=tuple(s.timed(clock, column or names[clock]) for s in self._plain("timed")))

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
        right = tuple(replace(source, broadcast=how.broadcast) for source in right)
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

    def _then(self, processor: Operator) -> Stream:
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
        """One result column an aggregate; those that ask for the time go by the time of the stream at this point."""
        if self.windows is None:
            raise TypeError("aggregate() needs window() before it")
        check(aggregates)
        aggregates = {name: aggregate.timed(self.time) for name, aggregate in aggregates.items()}
        if not isinstance(self.windows, Window):
            return self.process(self.windows.over(aggregates))
        logic = WindowAggregate(
            self.key, self.time, self.windows, self.lateness, aggregates, self.when, self.panes, self.evict
        )
        return self._then(logic)

    def process(self, processor: Operator) -> Stream:
        """Keyed logic: own, or an operator in event-time order."""
        loops = tuple(i for i, source in enumerate(self.sources) if not source.holds)
        return self._then(processor.bound(self.key, self.time, loops))

    def write(self, name: str, output: Output, dead: Output, late: Output | None = None) -> Job:
        """Ends in topics."""
        return Job(name, self.sources, self.key, self.processor, output, dead, late)
