"""The meaning of a `WindowAggregate` with any window, trigger, accumulation and evictor.

In a micro-batch processing time advances, the records come one after the other, the watermark advances, windows close.

* A record lies in the spans that its kind of window gives; overlapping spans of a key are merged in session windows.
* A span is closed to a record once its watermark has passed the end of the span by the allowed lateness. A record is
  late if all its spans are closed to it. The watermark of a record is the one in its own partition's log before its
  message, where that decides (`engine.spec.job.Job.decides_in_log`), and at least that of the shard before the batch.
* A record to which some spans are closed, or earlier sessions, waits until the watermark of the shard is there too. The
  micro-batch then has several steps, one for each watermark at which records that have waited come.
* Triggers say when a window fires (`engine.triggers.trigger`); when it closes, it also fires if it has records that
  were in no pane.
* A window with a `Rate` also fires again if, after it has fired, the last sample before it is another one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from engine.aggregates import Rate
from engine.operators.windows import WindowAggregate
from engine.reference.beyond import computed, without_beyond
from engine.reference.meaning import Reference
from engine.reference.rates import increased, predecessor
from engine.reference.spans import kept, spans_of
from engine.reference.triggers import Moment, Node, Since, View
from engine.spec.duration import END_OF_TIME, NEVER
from engine.spec.operator import Key, Progress, Row
from engine.triggers import AccumulatingAndRetracting, Discarding


@dataclass
class WindowContent:
    """The content of one window of a key.

    Attributes:
        records: All its records.
        fresh: Its records that were in no pane yet.
        since: The number of fresh records, and the processing time of the first.
        trigger: The state of the trigger.
        panes: Number of panes so far.
        revisions: Number of panes so far that were not early.
        last: The rows that the next pane retracts.
        lead: The counter sample before the window when it last fired.
    """

    key: Key
    start: int
    end: int
    trigger: Node
    records: list[Row] = field(default_factory=list)
    fresh: list[Row] = field(default_factory=list)
    since: Since = field(default_factory=Since)
    panes: int = 0
    revisions: int = 0
    last: list[Row] = field(default_factory=list)
    lead: Row | None = None

    def take(self, record: Row, clock: int) -> None:
        """Adds a record."""
        self.records.append(record)
        self.fresh.append(record)
        self.since.take(clock)
        self.trigger.take(clock)

    def merge(self, other: WindowContent) -> None:
        """Merges another window into this one (session merging)."""
        self.start, self.end = min(self.start, other.start), max(self.end, other.end)
        self.records, self.fresh = self.records + other.records, self.fresh + other.fresh
        self.since.merge(other.since)
        self.trigger.merge(other.trigger)
        self.panes, self.revisions = max(self.panes, other.panes), max(self.revisions, other.revisions)
        self.last = self.last + other.last


class WindowAggregateReference(Reference):
    """The meaning of a `WindowAggregate` with any window, trigger, accumulation and evictor."""

    def __init__(self, config: WindowAggregate) -> None:
        self.config = config
        self.lateness = int(config.allowed_lateness)
        self.held: list[WindowContent] = []
        self.waiting: list[tuple[int, Row]] = []
        self.taken: dict[Key, list[Row]] = {}
        self.rate = next((a for a in config.aggregates.values() if isinstance(a, Rate)), None)

    def take(self, records: list[Row], progress: Progress) -> tuple[list[Row], list[Row]]:
        """Processes one micro-batch; returns results and late records."""
        late: list[Row] = []
        at_once: list[Row] = []
        for record, passed in zip(records, progress.passed(len(records)).tolist(), strict=True):
            until = self.waits_until(record, passed)
            if until is None:
                late.append(record)
            elif until > progress.before:
                self.waiting.append((until, record))
            else:
                at_once.append(record)
        rows: list[Row] = []
        moment = Moment("clock", progress.before, progress.before, progress.clock)
        for window in self.held:
            rows += self.look(window, moment)
        step = progress
        for stop in sorted({until for until, _ in self.waiting if until <= progress.now}):
            rows += self.step(at_once, replace(step, now=stop))
            at_once, step = [record for until, record in self.waiting if until == stop], replace(step, before=stop)
        self.waiting = [(until, record) for until, record in self.waiting if until > progress.now]
        return without_beyond(rows + self.step(at_once, step)), late

    def waits_until(self, record: Row, passed: int) -> int | None:
        """The watermark of the shard for which a record waits; ``None`` if it is late by its own watermark."""
        spans = spans_of(self.config.window, self.instant(record))
        closed = [end for _, end in spans if self.gone(end, passed)]
        if spans and len(closed) == len(spans):
            return None
        if self.config.window.merges:  # a session that ends after the record begins may be closed
            return passed if self.gone(self.instant(record) + 1, passed) else NEVER
        return max((end + self.lateness for end in closed), default=NEVER)

    def step(self, records: list[Row], progress: Progress) -> list[Row]:
        """Takes in records, and advances the watermark; returns results."""
        rows: list[Row] = []
        moment = Moment("record", progress.before, progress.before, progress.clock)
        for record in records:
            spans = spans_of(self.config.window, self.instant(record))
            self.taken.setdefault(self.key_of(record), []).append(record)
            for start, end in [span for span in spans if not self.gone(span[1], progress.before)]:
                window = self.window_of(record, start, end, progress.clock)
                if self.config.fires.by_record:
                    rows += self.look(window, moment)
        moment = Moment("watermark", progress.before, progress.now, progress.clock)
        for window in self.held:
            rows += self.look(window, moment)
            if self.gone(window.end, progress.now) and window.fresh:
                rows += self.fire(window, moment)
        self.held = [window for window in self.held if not self.gone(window.end, progress.now)]
        return rows

    def gone(self, end: int, watermark: int) -> bool:
        """Whether a window is closed: the watermark has passed its end by the allowed lateness."""
        return watermark == END_OF_TIME or end + self.lateness <= watermark

    def window_of(self, record: Row, start: int, end: int, clock: int) -> WindowContent:
        """Puts a record into its window; in session windows, overlapping windows are merged."""
        key = self.key_of(record)
        window = WindowContent(key, start, end, Node(self.config.fires))
        for other in [w for w in self.held if w.key == key and self.same(w, start, end)]:
            self.held.remove(other)
            other.merge(window)
            window = other
        window.take(record, clock)
        self.held.append(window)
        return window

    def same(self, window: WindowContent, start: int, end: int) -> bool:
        """Whether a span belongs to a window: it is the window, or overlaps the session."""
        if self.config.window.merges:
            return window.start < end and start < window.end
        return (window.start, window.end) == (start, end)

    def look(self, window: WindowContent, moment: Moment) -> list[Row]:
        """Fires a window if its trigger is ready."""
        view = View(window.end, window.since, lambda: self.results(window))
        ready = window.trigger.ready(view, moment, window.since)
        on_time = moment.timing(window.end) == "on_time" and not isinstance(self.config.panes, Discarding)
        fires = ready and (bool(window.fresh) or on_time)
        window.trigger.looked_at(view, moment, window.since, fires)
        led_otherwise = moment.timing(window.end) == "late" and self.lead(window) != window.lead
        return self.fire(window, moment) if fires or led_otherwise else []

    def instant(self, record: Row) -> int:
        """The event time of a record: of the result of a window its last instant."""
        return int(record[self.config.time]) - self.config.ahead

    def key_of(self, record: Row) -> Key:
        """The key of a record."""
        return tuple(record[name] for name in self.config.key)

    def lead(self, window: WindowContent) -> Row | None:
        """The counter sample before a window, from which its rate is counted."""
        if self.rate is None:
            return None
        ahead = (record for record in self.taken[window.key] if self.instant(record) < window.start)
        return predecessor(self.rate, ahead, window.records)

    def fire(self, window: WindowContent, moment: Moment) -> list[Row]:
        """The retractions of the last pane, if panes are retracted, and the new pane."""
        timing = moment.timing(window.end)
        retracting = isinstance(self.config.panes, AccumulatingAndRetracting)
        row = self.results(window) | {"pane": window.panes, "timing": timing, "revision": window.revisions}
        if retracting:
            row["retraction"] = False
        rows = [was | {"retraction": True} for was in window.last] + [row]
        window.panes += 1
        window.revisions += timing != "early"
        window.last = [row] if retracting else []
        window.fresh, window.since = [], Since()
        window.lead = self.lead(window)
        return rows

    def results(self, window: WindowContent) -> Row:
        """The row of a pane with the aggregates as they are now."""
        records = self.ordered(window.fresh if isinstance(self.config.panes, Discarding) else window.records)
        if self.config.evictor:
            records = kept(self.config.evictor, records, self.config.time)
        row: Row = dict(zip(self.config.key, window.key, strict=True))
        row |= {"window_start": window.start, "window_end": window.end}
        for name, aggregate in self.config.aggregates.items():
            if isinstance(aggregate, Rate):
                row[name] = increased(aggregate, self.lead(window), records)
            else:
                row |= computed(name, aggregate, records)
        return row

    def ordered(self, records: Iterable[Row]) -> list[Row]:
        """Records sorted by event time; ties by their values, so that the order of arrival does not matter."""
        return sorted(records, key=lambda r: (r[self.config.time], *((r[c] is not None, r[c]) for c in sorted(r))))
