"""The builder of a job: what is read, how it is keyed, what is computed, and where the results are written.

    Stream.read(source)
      .key_by("entity", "metric")
      .window(Sliding("60s", every="10s"), allowed_lateness="10m")
      .aggregate(count=Count(), mean=Mean("value"))
      .write("extractor", Output("features", Features), dead=..., late=...)

The reference interpreter and the sharded operator on Spark run the same value.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from engine.aggregates import AnyAggregate, signed
from engine.aggregates.check import check
from engine.aggregates.signed import RETRACTION
from engine.formats.columnar import ColumnarDecoder
from engine.formats.compacted_json import CompactedJsonDecoder
from engine.formats.dead_letters import DeadLetter
from engine.formats.json_decoder import JsonDecoder
from engine.operators.chain import Chain, PassThrough, Transform
from engine.operators.sequence_aggregate import SequenceAggregate
from engine.operators.sequence_windows import SequenceWindows
from engine.operators.two_sided import TwoSided
from engine.operators.windows import WindowAggregate
from engine.spec.choice import check_choice
from engine.spec.columns import check_names
from engine.spec.decoder import Decoder
from engine.spec.default_outputs import json_output, late_output, side_output
from engine.spec.duration import Duration, DurationField
from engine.spec.errors import NewnormalError
from engine.spec.inputs import INPUT, check_key, schema
from engine.spec.job import Job
from engine.spec.operator import Operator
from engine.spec.output import Output, Side
from engine.spec.record import Record, check_instants, check_time
from engine.spec.source import Source, TimeDomain
from engine.spec.steps import Apply, Columns, Explode, Step, Where
from engine.spec.time_bounds import TimeBounds
from engine.triggers import ACCUMULATING, AccumulatingAndRetracting, Accumulation, Discarding, Trigger
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
        """Starts a stream that reads a source."""
        return cls((source,))

    @classmethod
    def read_json(
        cls,
        topics: str | Sequence[str],
        record: type[Record],
        time: str = "time",
        out_of_orderness: str | int = "0s",
        idle_after: str | int = "10s",
        max_ahead: str | int = "1m",
        tombstones: str | None = None,
    ) -> Stream:
        """Starts a stream that reads topics of JSON, one object in each message.

        Args:
            topics: One topic or several.
            record: The type of the records. Fields that it does not have are ignored; a message that does not fit it
                becomes a dead letter.
            time: The column of the event time: UTC epoch milliseconds, or ISO 8601 text for a field of type `Instant`.
            out_of_orderness: By how much records of one partition may be out of order.
            idle_after: A partition that has had no record for so long is idle: the watermark does not wait for it.
            max_ahead: A record whose event time lies further than this after its arrival becomes a dead letter.
            tombstones: For a compacted topic: the column whose text is the key of the messages. A message without a
                value is then a record of its key, at its arrival, whose other columns are null; see `TemporalJoin`.

        Raises:
            NewnormalError: ``DURATION_INVALID``, ``RECORD_INVALID``, ``COLUMN_UNKNOWN`` without such a time column.
        """
        decoder = JsonDecoder(record) if tombstones is None else CompactedJsonDecoder(record, tombstones, time)
        return cls._read(topics, record, decoder, time, out_of_orderness, idle_after, max_ahead)

    @classmethod
    def read_columnar(
        cls,
        topics: str | Sequence[str],
        record: type[Record],
        time: str = "time",
        out_of_orderness: str | int = "0s",
        idle_after: str | int = "10s",
        max_ahead: str | int = "1m",
    ) -> Stream:
        """Starts a stream that reads topics which a job wrote with ``format="columnar"``; arguments as in `read_json`.

        If the messages carry their writer's watermark, that is used, and ``out_of_orderness`` has no effect.
        """
        return cls._read(topics, record, ColumnarDecoder(record), time, out_of_orderness, idle_after, max_ahead)

    @classmethod
    def _read(
        cls,
        topics: str | Sequence[str],
        record: type[Record],
        decoder: Decoder,
        time: str,
        out_of_orderness: str | int,
        idle_after: str | int,
        max_ahead: str | int,
    ) -> Stream:
        check_time(record, time)
        formats = dict.fromkeys([topics] if isinstance(topics, str) else topics, decoder)
        if not formats:
            raise NewnormalError(
                "STREAM_INCOMPLETE", "no topic to read", "read_json()", "one topic or several", "no job"
            )
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
        """Chooses the time that windows, triggers and operators work on. Without this call it is event time.

        Args:
            clock: ``"event"``: the time in the records. ``"ingestion"``: the arrival of a record at Kafka.
                ``"processing"``: the shard's clock when it takes the record in, that is the record's arrival, or the
                greatest arrival before the micro-batch if that is later.
            column: Name of the time column. For ingestion and processing time it is added, or replaced if it exists.
                ``None``: ``arrived``, ``processed``, or the time column of the source.

        Raises:
            NewnormalError: ``CHOICE_INVALID`` if there is no such clock.
        """
        check_choice(clock, TimeDomain, "timed()")
        names = {"event": self.source.time, "ingestion": "arrived", "processing": "processed"}
        return replace(self, sources=tuple(s.timed(clock, column or names[clock]) for s in self._plain("timed")))

    def merge(self, other: Stream) -> Stream:
        """Merges two streams into one with the records of both; columns of the same name are one column."""
        return replace(self, sources=(*self._plain("merge"), *other._plain("merge")))

    def loop(self, source: Source) -> Stream:
        """Also reads a topic that the job itself writes.

        The watermark does not wait for it, and it has no late records.
        """
        return self.merge(Stream.read(replace(source, holds=False)))

    def join(self, other: Stream, how: TwoSided) -> Stream:
        """Joins two streams by key: `IntervalJoin`, `WindowJoin`, `TemporalJoin`, `Correlation` or `Broadcast`."""
        left, right = self._plain("join"), other._plain("join")
        names = [[name for name in schema(side).names if name != INPUT] for side in (left, right)]
        right = tuple(replace(source, broadcast=how.broadcast) for source in right)
        both = replace(self, sources=(*left, *right))
        return both.process(how.sided(len(left), *names))

    def _plain(self, method: str) -> tuple[Source, ...]:
        if isinstance(self.processor, PassThrough):
            return self.sources
        accepted = (
            f'{method} first; or two jobs with a topic between them: .write("between") here, '
            f'then Stream.read_json("between", ...).{method}(...)'
        )
        raise NewnormalError("STREAM_ORDER", f"{method} after an operator", f"{method}()", accepted, "no job")

    def filter(self, condition: str) -> Stream:
        """Keeps the records for which a SQL condition is true."""
        return self._step(Where(condition))

    def map(self, function: Callable[[Any], Any] | None = None, arrow: bool = False, **columns: str) -> Stream:
        """Sets columns to SQL expressions, or replaces each record by the result of a function (see `Apply`)."""
        stepped = self._step(Apply(function, arrow)) if function else self
        return stepped._step(Columns(tuple(columns.items()))) if columns else stepped

    def select(self, *names: str, **columns: str) -> Stream:
        """Keeps only the named columns, and adds columns from SQL expressions."""
        return self._step(Columns((*((name, f'"{name}"') for name in names), *columns.items()), only=True))

    def flat_map(self, elements: str | Callable[[Any], Any], arrow: bool = False) -> Stream:
        """Makes one record of each element of a list column, or any number of records by a function (see `Apply`)."""
        return self._step(Explode(elements) if isinstance(elements, str) else Apply(elements, arrow))

    def _step(self, step: Step) -> Stream:
        """Adds a step. A step on the input runs where records are decoded, one on results in the shard."""
        if not isinstance(self.processor, PassThrough):
            return self._then(Transform((step,)))
        stepped = replace(self, sources=tuple(replace(s, steps=(*s.steps, step)) for s in self.sources))
        schema(stepped.sources)  # refuses a step that does not fit the columns
        return stepped

    def _then(self, processor: Operator) -> Stream:
        if self.windows is not None:
            what = f"{type(processor).__name__} after window() without aggregate() in between"
            raise NewnormalError("STREAM_INCOMPLETE", what, "window()", "window(...).aggregate(...)", "no job")
        columns = self.columns
        if columns is not None:
            check_instants(columns, self.time, f"the event time of {type(processor).__name__}")
            results = processor.results(columns)  # refuses an operator that names a column that is not there
            for names in (columns.names, (results or columns).names):
                check_names([name for name in names if name != INPUT], type(processor).__name__)
        if isinstance(self.processor, PassThrough):
            return replace(self, processor=processor)
        before = self.processor.parts if isinstance(self.processor, Chain) else (self.processor,)
        return replace(self, processor=Chain((*before, processor)))

    def key_by(self, *columns: str) -> Stream:
        """Sets the key. Its first column, which must be text, decides shard and partition.

        Raises:
            NewnormalError: ``KEY_MISSING``, ``KEY_INVALID``, ``COLUMN_UNKNOWN``; ``STREAM_ORDER`` after an operator.
        """
        check_key(self._plain("key_by"), columns)
        return replace(self, key=columns)

    def window(self, window: Window | SequenceWindows, allowed_lateness: str | int = "0s") -> Stream:
        """Groups records into windows; a late record within the allowed lateness revises its window.

        Raises:
            NewnormalError: ``KEY_MISSING``; ``STREAM_INCOMPLETE`` if an earlier ``window()`` has no ``aggregate()``.
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
        allowed_lateness: str | int | None = None,
    ) -> Stream:
        """Says when windows fire, how the panes of one window relate, and which records of a window count."""
        if self.windows is None:
            what = "trigger() without window() before it"
            raise NewnormalError("STREAM_INCOMPLETE", what, "trigger()", "window(...).trigger(...)", "no job")
        lateness = self.lateness if allowed_lateness is None else allowed_lateness
        return replace(self, when=trigger, panes=panes, evict=evict, lateness=lateness)

    def aggregate(self, **aggregates: AnyAggregate) -> Stream:
        """Computes one result column for each aggregate.

        `First`, `Last` and `Rate` use the stream's current time column.
        """
        if self.windows is None:
            what = "aggregate() without window() before it"
            raise NewnormalError("STREAM_INCOMPLETE", what, "aggregate()", "window(...).aggregate(...)", "no job")
        if not aggregates:
            raise NewnormalError("STREAM_INCOMPLETE", "aggregate() of nothing", "aggregate()", "n=Count()", "no job")
        check(aggregates)
        aggregates = self._of_panes(aggregates)
        aggregates = {name: aggregate.timed(self.time) for name, aggregate in aggregates.items()}
        done = replace(self, windows=None, when=None, panes=ACCUMULATING, evict=None, lateness="0s")
        if not isinstance(self.windows, Window):
            return done.process(SequenceAggregate(self.windows, aggregates))
        logic = WindowAggregate(
            self.key,
            self.time,
            self.windows,
            self.lateness,
            aggregates,
            self.when,
            self.panes,
            self.evict,
            self.processor.result_ahead(0),
        )
        return done._then(logic)

    def _of_panes(self, aggregates: dict[str, AnyAggregate]) -> dict[str, AnyAggregate]:
        """The aggregates for what comes in: of the results of windows each pane would count, so panes must add up.

        Raises:
            NewnormalError: ``PANES_REPEATED``; ``AGGREGATE_UNSUPPORTED``.
        """
        parts = self.processor.parts if isinstance(self.processor, Chain) else (self.processor,)
        stateful = [part for part in parts if not isinstance(part, (PassThrough, Transform))]
        windowed = [i for i, part in enumerate(stateful) if isinstance(part, (WindowAggregate, SequenceAggregate))]
        before = stateful[windowed[-1]] if windowed else None
        if not isinstance(before, WindowAggregate) or before.once or isinstance(before.panes, Discarding):
            return aggregates
        if between := [type(part).__name__ for part in stateful[windowed[-1] + 1 :]]:
            what = f"the windows before {', '.join(between)} have several results each, which may be counted twice"
            accepted = "windows of one result each: without allowed lateness and early results; or Discarding()"
            raise NewnormalError("PANES_REPEATED", what, "aggregate()", accepted, "no job")
        columns = self.columns
        if (
            not isinstance(before.panes, AccumulatingAndRetracting)
            or columns is None
            or RETRACTION not in columns.names
        ):
            what = "the windows before have several results each, which this aggregation would all count"
            accepted = (
                ".trigger(AfterWatermark(), AccumulatingAndRetracting()) before the first aggregate(): earlier results "
                "are taken off again; or Discarding(): results add up; or neither allowed lateness nor early results"
            )
            raise NewnormalError("PANES_REPEATED", what, "aggregate()", accepted, "no job")
        if not isinstance(self.windows, Window):
            what = f"{self.windows!r} cannot take back a record that the windows before it retract"
            raise NewnormalError("PANES_REPEATED", what, "aggregate()", "windows of time", "no job")
        return dict(signed(aggregates))

    def process(self, processor: Operator) -> Stream:
        """Applies an operator in event-time order, such as `Process` with logic of one's own.

        Raises:
            NewnormalError: ``KEY_MISSING``; ``COLUMN_UNKNOWN`` if the operator names a column that does not exist.
        """
        self._keyed(f"process({type(processor).__name__})")
        loops = tuple(i for i, source in enumerate(self.sources) if not source.holds)
        return self._then(processor.bound(self.key, self.time, loops))

    @property
    def columns(self) -> pa.Schema | None:
        """The columns at this point; ``None`` after a user's own logic, which may emit any columns."""
        return self.processor.results(schema(self.sources))

    def write(
        self,
        name: str,
        output: Output | type[Record] | None = None,
        dead: Output | None = None,
        late: Output | None = None,
        side: Mapping[str, Output | Side | type[Record] | str] | None = None,
    ) -> Job:
        """Writes the results to topics, which completes the job.

        Args:
            name: Name of the job, and of the topic that it writes, unless ``output`` names another topic.
            output: The topic, or the type of its records, which are then written as JSON. By default a record type
                with all columns of the results.
            dead: Output for messages that cannot be used; by default JSON in ``<name>.deadletter``.
            late: Output for records that come too late; by default JSON in ``<name>.late``. If ``dead`` is given and
                ``late`` is not, late records are only counted.
            side: Further outputs by name, written in the same transaction. The value is one of: a SQL condition (the
                results of the main output for which it is true go to a topic of that name); a record type (what the
                user's logic emits to that name with `aside` or ``turn.emit(to=...)`` goes there as JSON); an `Output`
                (the same, in a topic that it describes); a `Side` (the same, with a condition too).

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
        sides = tuple(side_output(key, declared, main) for key, declared in (side or {}).items())
        return Job(name, self.sources, self.key, self.processor, main, dead, late, sides)
