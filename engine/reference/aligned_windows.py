"""Aligned windows that fire at the watermark and again for late data: the meaning of a plain `WindowAggregate`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from engine.aggregates import Rate
from engine.operators.windows import WindowAggregate
from engine.reference.meaning import Reference
from engine.spec.duration import duration_ms
from engine.spec.operator import Key, Progress, Row


@dataclass
class Fired:
    """The latest revision of one window of one key, and what it was computed from."""

    revision: int
    count: int
    lead: tuple[float, int]


class Windows(Reference):
    """The meaning of a `WindowAggregate`.

    * A record lies in every window with start <= time < end.
    * It is too late if the last of them ended, lateness included, at or before the watermark ahead of its batch.
    * A window of a key fires, with revision 0, when the watermark reaches its end.
    * After that it fires again, with the next revision, in each batch that changes it: by a record that lies in it, or
      by one ahead of it that is now the predecessor of its first counter sample.
    """

    def __init__(self, config: WindowAggregate) -> None:
        self.config = config
        self.window = config.sliding
        self.lateness = duration_ms(config.allowed_lateness)
        self.records: dict[Key, list[Row]] = {}
        self.fired: dict[tuple[int, Key], Fired] = {}

    def take(self, records: list[Row], progress: Progress) -> tuple[list[Row], list[Row]]:
        """Adds a micro-batch; returns the windows that fire, and the records that are too late."""
        late = self.add(records, progress.before)
        return self.fire(progress.before, progress.now), late

    def add(self, records: Iterable[Row], before: int) -> list[Row]:
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
        row |= {"window_start": end - self.window.size_ms, "window_end": end, "revision": revision}
        for name, aggregate in self.config.aggregates.items():
            if isinstance(aggregate, Rate):
                row[name] = aggregate.reference(inside, self.predecessor(end, key, aggregate))
            else:
                row[name] = aggregate.reference(inside)
        return row

    def ends_of(self, record: Row) -> list[int]:
        """Ends of the windows in which a record lies, ascending."""
        return self.window.ends_of(self.window.slice_start(record[self.config.time]))

    def inside(self, end: int, key: Key) -> list[Row]:
        """The records of a window, in event-time order, those of one time by their values."""
        start = end - self.window.size_ms
        return self.ordered(r for r in self.records[key] if start <= r[self.config.time] < end)

    def predecessor(self, end: int, key: Key, rate: Rate) -> Row | None:
        """The last sample ahead of a window, if its first one lies within the lookback of it."""
        start, time = end - self.window.size_ms, self.config.time
        ahead = rate.samples(r for r in self.records[key] if r[time] < start)
        inside = rate.samples(self.inside(end, key))
        near = inside and ahead and inside[0][time] - ahead[-1][time] <= rate.lookback_ms
        return ahead[-1] if near else None

    def lead(self, end: int, key: Key) -> tuple[float, int]:
        """The predecessor's part in a window's rate: increase and elapsed milliseconds up to its first sample."""
        rate = next((a for a in self.config.aggregates.values() if isinstance(a, Rate)), None)
        before = self.predecessor(end, key, rate) if rate else None
        if rate is None or before is None:
            return 0.0, 0
        first = rate.samples(self.inside(end, key))[0]
        was, value = before[rate.column], first[rate.column]
        elapsed = first[self.config.time] - before[self.config.time]
        return (value - was if value >= was else value), elapsed

    def ordered(self, records: Iterable[Row]) -> list[Row]:
        """By event time; records of one time and key by value, so that the order of arrival never matters."""
        return sorted(records, key=lambda r: (r[self.config.time], *((r[c] is not None, r[c]) for c in sorted(r))))
