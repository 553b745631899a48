"""The reference interpreter of a job: the specification of what windows, watermarks and revisions mean.

Slow and obvious on purpose: dicts and lists, one record at a time, everything kept for ever, no arrays and no Spark.
The sharded operator must give the same windows; `tests/engine` holds the one against the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from engine.aggregates import Rate
from engine.errors import NewnormalError
from engine.job import Job, PassThrough, WindowAggregate
from engine.time import NEVER, duration_ms
from engine.watermarks import Marker, WatermarkTracker

Row = dict[str, Any]
Key = tuple[Any, ...]


@dataclass(frozen=True)
class Arrival:
    """A good record, and where and when it arrived.

    Attributes:
        arrived: Arrival time at Kafka, epoch milliseconds.
    """

    topic: str
    partition: int
    arrived: int
    record: Row


@dataclass(frozen=True)
class Vouched:
    """What the writer of a partition vouches for: after this, it sends nothing older than the watermark."""

    topic: str
    partition: int
    arrived: int
    watermark: int


@dataclass(frozen=True)
class Silence:
    """A heartbeat of a partition: it is alive, and has nothing to say."""

    topic: str
    partition: int
    arrived: int


@dataclass
class Outcome:
    """What a job makes of its input.

    Attributes:
        rows: Results in the order they are emitted.
        late: Records that came too late, in the order they came.
        watermarks: The watermark after each batch.
    """

    rows: list[Row] = field(default_factory=list)
    late: list[Row] = field(default_factory=list)
    watermarks: list[int] = field(default_factory=list)


def interpret(job: Job, batches: Iterable[Sequence[Arrival | Vouched | Silence]]) -> Outcome:
    """Runs a job over micro-batches.

    Raises:
        NewnormalError: ``PROCESSOR_UNKNOWN`` if the job's processor is own logic, which has no specification here.
    """
    logic = _windows(job)
    tracker = WatermarkTracker(job.source.watermark)
    outcome = Outcome()
    for batch in batches:
        before = tracker.watermark
        now = tracker.advance(_markers(job, batch))
        records = [entry.record for entry in batch if isinstance(entry, Arrival)]
        if logic is None:
            outcome.rows += records
        else:
            outcome.late += logic.take(records, before)
            outcome.rows += logic.fire(before, now)
        outcome.watermarks.append(now)
    return outcome


def _windows(job: Job) -> Windows | None:
    if isinstance(job.processor, WindowAggregate):
        return Windows(job.processor)
    if isinstance(job.processor, PassThrough):
        return None
    raise NewnormalError("PROCESSOR_UNKNOWN", f"{type(job.processor).__name__} has no reference", accepted="windows")


def _markers(job: Job, batch: Sequence[Arrival | Vouched | Silence]) -> list[Marker]:
    """One marker an entry; nobody can vouch for more than `TimeBounds.max_ahead` beyond the arrival."""
    ahead = duration_ms(job.source.bounds.max_ahead)
    markers = []
    for entry in batch:
        where = (entry.topic, entry.partition)
        if isinstance(entry, Vouched):
            vouched = min(entry.watermark, entry.arrived + ahead)
            markers.append(Marker(*where, NEVER, vouched, entry.arrived, entry.arrived, entry.arrived))
        elif isinstance(entry, Silence):
            markers.append(Marker(*where, NEVER, None, entry.arrived, entry.arrived, NEVER))
        else:
            time = entry.record[job.source.time]
            markers.append(Marker(*where, time, None, entry.arrived, entry.arrived, entry.arrived))
    return markers


@dataclass
class Fired:
    """The latest revision of one window of one key, and what it was computed from."""

    revision: int
    count: int
    lead: tuple[float, int]


class Windows:
    """The meaning of a `WindowAggregate`.

    * A record lies in every window with start <= time < end.
    * It is too late if the last of them ended, lateness included, at or before the watermark ahead of its batch.
    * A window of a key fires, with revision 0, when the watermark reaches its end.
    * After that it fires again, with the next revision, in each batch that changes it: by a record that lies in it, or
      by one ahead of it that is now the predecessor of its first counter sample.
    """

    def __init__(self, config: WindowAggregate) -> None:
        self.config = config
        self.lateness = duration_ms(config.allowed_lateness)
        self.records: dict[Key, list[Row]] = {}
        self.fired: dict[tuple[int, Key], Fired] = {}

    def take(self, records: Iterable[Row], before: int) -> list[Row]:
        """Adds records; returns those too late."""
        late = []
        for record in records:
            if self.ends_of(record)[-1] + self.lateness <= before:
                late.append(record)
            else:
                self.records.setdefault(tuple(record[k] for k in self.config.key), []).append(record)
        return late

    def fire(self, before: int, now: int) -> list[Row]:
        """Results of the windows that the watermark passes, then of those passed before that changed."""
        known = {(end, key) for key, records in self.records.items() for r in records for end in self.ends_of(r)}
        windows = sorted(known)
        closed = [self.result(end, key) for end, key in windows if before < end <= now]
        revised = [self.result(end, key) for end, key in windows if end <= before and self.changed(end, key)]
        return closed + revised

    def changed(self, end: int, key: Key) -> bool:
        """Whether a window is other than when it last fired."""
        was = self.fired.get((end, key))
        return was is None or (was.count, was.lead) != (len(self.inside(end, key)), self.lead(end, key))

    def result(self, end: int, key: Key) -> Row:
        """Fires a window."""
        inside, was = self.inside(end, key), self.fired.get((end, key))
        revision = was.revision + 1 if was else 0
        self.fired[(end, key)] = Fired(revision, len(inside), self.lead(end, key))
        row: Row = dict(zip(self.config.key, key, strict=True))
        row |= {"window_start": end - self.config.window.size_ms, "window_end": end, "revision": revision}
        for name, aggregate in self.config.aggregates.items():
            if isinstance(aggregate, Rate):
                row[name] = aggregate.reference(inside, self.predecessor(end, key, aggregate))
            else:
                row[name] = aggregate.reference(inside)
        return row

    def ends_of(self, record: Row) -> list[int]:
        """Ends of the windows in which a record lies, ascending."""
        window = self.config.window
        return window.ends_of(window.pane_start(record[self.config.time]))

    def inside(self, end: int, key: Key) -> list[Row]:
        """The records of a window, in event-time order, those of one time by their values."""
        start = end - self.config.window.size_ms
        return self.ordered(r for r in self.records[key] if start <= r[self.config.time] < end)

    def predecessor(self, end: int, key: Key, rate: Rate) -> Row | None:
        """The last record ahead of a window, if its first one lies within the lookback of it."""
        start = end - self.config.window.size_ms
        ahead = self.ordered(r for r in self.records[key] if r[self.config.time] < start)
        first = self.inside(end, key)[0]
        near = ahead and first[self.config.time] - ahead[-1][self.config.time] <= rate.lookback_ms
        return ahead[-1] if near else None

    def lead(self, end: int, key: Key) -> tuple[float, int]:
        """The predecessor's part in a window's rate: increase and elapsed milliseconds up to its first sample."""
        rate = next((a for a in self.config.aggregates.values() if isinstance(a, Rate)), None)
        first = self.inside(end, key)[0]
        if rate is None or (rate.only and first[rate.only[0]] != rate.only[1]):
            return 0.0, 0
        before = self.predecessor(end, key, rate)
        if before is None:
            return 0.0, 0
        was, value = before[rate.column], first[rate.column]
        elapsed = first[self.config.time] - before[self.config.time]
        return (value - was if value >= was else value), elapsed

    def ordered(self, records: Iterable[Row]) -> list[Row]:
        """By event time; records of one time and key by value, so that the order of arrival never matters."""
        return sorted(records, key=lambda r: (r[self.config.time], *(r[c] for c in sorted(r))))
