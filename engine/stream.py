"""The builder of a job: what is read, how it is keyed, what is computed, where it goes.

    Stream.read(source)
      .key_by("entity", "metric")
      .window(Sliding("60s", every="10s"), allowed_lateness="10m")
      .aggregate(count=Count(), mean=Mean("value"))
      .write("extractor", Output("features", Features), dead=..., late=...)

The same value is run by the reference interpreter and by the sharded operator on Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from engine.aggregates import AnyAggregate
from engine.aggregates.check import check
from engine.formats.columnar import ColumnarDecoder
from engine.formats.dead_letters import DeadLetter
from engine.formats.json_decoder import JsonDecoder
from engine.operators.chain import Chain, PassThrough, Transform
from engine.operators.sequence_aggregate import SequenceAggregate
from engine.operators.sequence_windows import SequenceWindows
from engine.operators.two_sided import TwoSided
from engine.operators.windows import WindowAggregate
from engine.spec.decoder import Decoder
from engine.spec.default_outputs import json_output, late_output, side_output
from engine.spec.duration import Duration, DurationField
from engine.spec.errors import NewnormalError
from engine.spec.inputs import INPUT, check_key, schema
from engine.spec.job import Job
from engine.spec.operator import Operator
from engine.spec.output import Output, Side
from engine.spec.record import Record, check_time
from engine.spec.source import Source, TimeDomain
from engine.spec.steps import Apply, Columns, Explode, Step, Where
from engine.spec.time_bounds import TimeBounds
from engine.triggers import ACCUMULATING, Accumulation, Trigger
from engine.watermarks import BoundedOutOfOrderness
from engine.windows import Evictor, Window


@dataclass(frozen=True)
class Stream:
    """Builder of a `Job`; each call returns a new value."""

    sources: tuple[Source, ...]
    key: tuple[str, ...] = ()
    windows: Window | SequenceWindows | None = None
    lateness: DurationField = DurationField("allowed_lateness", "0s")
    when: Trigger | None = None
    panes: Accumulation = ACCUMULATING
    evict: Evictor | None = None
    processor: Operator = field(default_factory=PassThrough)

    @classmethod
    def read(cls, source: Source) -> Stream:
        """Starts from a source."""
        return cls((source,))

    @classmethod
    def read_json(
        cls,
        topics: str | Sequence[str],
        record: type[Record],
        time: str = "time",
        out_of_orderness: str = "0s",
        idle_after: str = "10s",
        max_ahead: str = "1m",
    ) -> Stream:
        """Starts from topics of JSON, one object a message.

        Args:
            topics: One topic or several.
            record: The type of the records: a field that it does not know is ignored, a message that does not fit
                becomes a dead letter.
            time: The column of the event time: UTC epoch milliseconds, or ISO 8601 text for a field of type `Instant`.
            out_of_orderness: By how much records of one partition may be out of order.
            idle_after: A partition without a record for so long is not waited for.
            max_ahead: A record whose event time lies further ahead of its arrival becomes a dead letter.

        Raises:
            NewnormalError: ``DURATION_INVALID``, ``RECORD_INVALID``, or ``COLUMN_UNKNOWN`` if there is no such time.
        """
        return cls._read(topics, record, JsonDecoder(record), time, out_of_orderness, idle_after, max_ahead)

    @classmethod
    def read_columnar(
        cls,
        topics: str | Sequence[str],
        record: type[Record],
        time: str = "time",
        out_of_orderness: str = "0s",
        idle_after: str = "10s",
        max_ahead: str = "1m",
    ) -> Stream:
        """Starts from topics that another job wrote with ``format="columnar"``; the arguments are those of `read_json`.

        Where the writer tells its watermark in the messages, that is used, and ``out_of_orderness`` does not matter.
        """
        return cls._read(topics, record, ColumnarDecoder(record), time, out_of_orderness, idle_after, max_ahead)

    @classmethod
    def _read(
        cls,
        topics: str | Sequence[str],
        record: type[Record],
        decoder: Decoder,
        time: str,
        out_of_orderness: str,
        idle_after: str,
        max_ahead: str,
    ) -> Stream:
        check_time(record, time)
        formats = dict.fromkeys([topics] if isinstance(topics, str) else topics, decoder)
        strategy = BoundedOutOfOrderness(Duration(out_of_orderness, "out_of_orderness"), idle_after)
        columnar = isinstance(decoder, ColumnarDecoder)
        return cls.read(Source(formats, record, time, strategy, TimeBounds(max_ahead), columnar=columnar))

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
        accepted = (
            f'{what} first; or two jobs with a topic between them: .write("between") here, '
            f'then Stream.read_json("between", ...).{what}(...)'
        )
        raise NewnormalError("STREAM_ORDER", f"{what} after an operator", f"{what}()", accepted, "no job")

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
        """Adds a step: on input it runs where records are decoded, on results in the shard."""
        if not isinstance(self.processor, PassThrough):
            return self._then(Transform((step,)))
        stepped = replace(self, sources=tuple(replace(s, steps=(*s.steps, step)) for s in self.sources))
        schema(stepped.sources)  # refuses a step that does not go with the columns
        return stepped

    def _then(self, processor: Operator) -> Stream:
        if self.windows is not None:
            what = f"{type(processor).__name__} after window() without aggregate() in between"
            raise NewnormalError("STREAM_INCOMPLETE", what, "window()", "window(...).aggregate(...)", "no job")
        columns = self.columns
        if columns is not None:
            processor.results(columns)  # refuses an operator that names a column that is not there
        if isinstance(self.processor, PassThrough):
            return replace(self, processor=processor)
        before = self.processor.parts if isinstance(self.processor, Chain) else (self.processor,)
        return replace(self, processor=Chain((*before, processor)))

    def key_by(self, *columns: str) -> Stream:
        """Keys by columns; the first one, which must be text, decides shard and partition.

        Raises:
            NewnormalError: ``KEY_MISSING``, ``KEY_INVALID``, ``COLUMN_UNKNOWN``; ``STREAM_ORDER`` after an operator.
        """
        check_key(self._plain("key_by"), columns)
        return replace(self, key=columns)

    def window(self, window: Window | SequenceWindows, allowed_lateness: str = "0s") -> Stream:
        """Groups into windows; a late record within the lateness revises its window.

        Raises:
            NewnormalError: ``KEY_MISSING``; ``STREAM_INCOMPLETE`` if the windows before have no aggregates.
        """
        self._keyed("window()")
        if self.windows is not None:
            what = "a second window() before the aggregate() of the first"
            raise NewnormalError("STREAM_INCOMPLETE", what, "window()", "window(...).aggregate(...) each", "no job")
        return replace(self, windows=window, lateness=allowed_lateness, when=None, panes=ACCUMULATING, evict=None)

    def _keyed(self, where: str) -> None:
        if not self.key:
            columns = ", ".join(name for name in schema(self.sources).names if name != INPUT)
            raise NewnormalError(
                "KEY_MISSING", f"{where} without key_by() before it", where, f"some of {columns}", "no job"
            )

    def trigger(
        self,
        trigger: Trigger,
        panes: Accumulation = ACCUMULATING,
        evict: Evictor | None = None,
        allowed_lateness: str | None = None,
    ) -> Stream:
        """Says when windows give results, how these relate, and which records of a window count."""
        if self.windows is None:
            what = "trigger() without window() before it"
            raise NewnormalError("STREAM_INCOMPLETE", what, "trigger()", "window(...).trigger(...)", "no job")
        lateness = self.lateness if allowed_lateness is None else allowed_lateness
        return replace(self, when=trigger, panes=panes, evict=evict, lateness=lateness)

    def aggregate(self, **aggregates: AnyAggregate) -> Stream:
        """One result column an aggregate; those that ask for the time go by the time of the stream at this point."""
        if self.windows is None:
            what = "aggregate() without window() before it"
            raise NewnormalError("STREAM_INCOMPLETE", what, "aggregate()", "window(...).aggregate(...)", "no job")
        check(aggregates)
        aggregates = {name: aggregate.timed(self.time) for name, aggregate in aggregates.items()}
        done = replace(self, windows=None, when=None, panes=ACCUMULATING, evict=None, lateness="0s")
        if not isinstance(self.windows, Window):
            return done.process(SequenceAggregate(self.windows, aggregates))
        logic = WindowAggregate(
            self.key, self.time, self.windows, self.lateness, aggregates, self.when, self.panes, self.evict
        )
        return done._then(logic)

    def process(self, processor: Operator) -> Stream:
        """Keyed logic: own, or an operator in event-time order.

        Raises:
            NewnormalError: ``KEY_MISSING``; ``COLUMN_UNKNOWN`` if it names a column that is not there.
        """
        self._keyed(f"process({type(processor).__name__})")
        loops = tuple(i for i, source in enumerate(self.sources) if not source.holds)
        return self._then(processor.bound(self.key, self.time, loops))

    @property
    def columns(self) -> pa.Schema | None:
        """The columns at this point; ``None`` after own logic, which may emit any."""
        return self.processor.results(schema(self.sources))

    def write(
        self,
        name: str,
        output: Output | type[Record] | None = None,
        dead: Output | None = None,
        late: Output | None = None,
        side: Mapping[str, Output | Side | type[Record] | str] | None = None,
    ) -> Job:
        """Ends in topics.

        Args:
            name: Name of the job; and of the topic that it writes, unless ``output`` names another.
            output: The topic; or the type of its records, which are then JSON; by default a type with all columns of
                the results.
            dead: Where messages that cannot be used go; by default JSON in ``<name>.deadletter``.
            late: Where records that come too late go. By default JSON in ``<name>.late``, but where ``dead`` is named
                and this is not, they are counted only.
            side: Further outputs by name, written in the same transaction. A SQL condition: those results of the main
                output for which it is true, in a topic of that name. A record type: what own logic emits to that name
                (`aside`, or ``turn.emit(to=...)``), as JSON in a topic of that name. An `Output`: the same in a topic
                that one describes oneself; a `Side`: with a condition, too.

        Raises:
            NewnormalError: If the job is not complete, or a record type does not fit; see `Job`.
        """
        where = f"write({name!r})"
        if self.windows is not None:
            what = "window() without aggregate() after it"
            raise NewnormalError("STREAM_INCOMPLETE", what, where, "window(...).aggregate(...)", "no job")
        self._keyed(where)
        if late is None and dead is None:
            late = late_output(name, self.processor.late_forms([s.columns() for s in self.sources]), self.key, where)
        dead = dead or Output(f"{name}.deadletter", DeadLetter, "json")
        main = output if isinstance(output, Output) else json_output(name, output, self.columns, self.key, where)
        sides = tuple(side_output(key, some, main) for key, some in (side or {}).items())
        return Job(name, self.sources, self.key, self.processor, main, dead, late, sides)
