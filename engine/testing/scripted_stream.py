"""A stream written by hand: records, watermarks, processing time, crashes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

from engine.reference import Arrival, Heartbeat, Watermark
from engine.spec.duration import NEVER, duration_ms

Entry = Arrival | Watermark | Heartbeat


class Sentinel(Enum):
    """What happens to the job between two records."""

    ABORT = "abort"
    RESTART = "restart"


ABORT, RESTART = Sentinel.ABORT, Sentinel.RESTART
"""`ABORT` kills the job before the micro-batch is committed, `RESTART` stops it after that; both start it again."""


@dataclass(frozen=True)
class Batch:
    """One micro-batch, and what happens at its end."""

    entries: tuple[Entry, ...]
    then: Sentinel | None = None


@dataclass(frozen=True)
class TestStream:
    """The input of a job, step by step; each step is a micro-batch. Each call returns a new value.

    Only `advance_watermark` moves the watermark.

    Args:
        start: Start of event time and of processing time, epoch milliseconds.
        topics: The topics that records come from.
        partitions: How many partitions each topic has.
        batches: The micro-batches so far.
        clock: Processing time now, epoch milliseconds; ``None``: ``start``.
    """

    __test__ = False

    start: int = 0
    topics: tuple[str, ...] = ("t",)
    partitions: int = 1
    batches: tuple[Batch, ...] = ()
    clock: int | None = None

    @property
    def now(self) -> int:
        """Processing time."""
        return self.start if self.clock is None else self.clock

    def add(self, *items: dict[str, Any] | Sentinel, partition: int = 0, topic: str | None = None) -> TestStream:
        """Adds records of one partition that arrive together; a sentinel among them ends a micro-batch.

        Args:
            items: Records and sentinels.
            partition: The partition.
            topic: The topic; ``None``: the first one.
        """
        stream = self._begun()
        entries: list[Entry] = []
        for item in items:
            if isinstance(item, Sentinel):
                stream = stream._batch(tuple(entries), item)
                entries = []
            else:
                entries.append(Arrival(topic or self.topics[0], partition, self.now, item))
        return stream._batch(tuple(entries)) if entries else stream

    def advance_watermark(self, to: str | int, partition: int | None = None, topic: str | None = None) -> TestStream:
        """Advances the watermark: no older record is expected.

        Args:
            to: The watermark, as a duration or milliseconds after ``start``.
            partition: The partition whose watermark advances; ``None``: all.
            topic: The topic of the partition; ``None``: all.
        """
        when = self.start + duration_ms(to)
        advanced = [(t, p) for t, p in self.places() if topic in (None, t) and partition in (None, p)]
        return self._begun()._batch(tuple(Watermark(t, p, self.now, when) for t, p in advanced))

    def advance_clock(self, by: str | int, partition: int | None = None) -> TestStream:
        """Advances processing time by a duration, by heartbeats in one partition of each topic, or in all."""
        stream = replace(self._begun(), clock=self.now + duration_ms(by))
        beats = (Heartbeat(t, p, stream.now) for t, p in self.places() if partition in (None, p))
        return stream._batch(tuple(beats))

    def as_one_batch(self, last: int) -> TestStream:
        """Makes one micro-batch of the last ``last`` ones."""
        joined = tuple(e for batch in self.batches[-last:] for e in batch.entries)
        return replace(self, batches=(*self.batches[:-last], Batch(joined, self.batches[-1].then)))

    def abort(self) -> TestStream:
        """Kills the job in the last micro-batch, which is repeated."""
        return self._then(ABORT)

    def restart(self) -> TestStream:
        """Stops the job after the last micro-batch, and restores it."""
        return self._then(RESTART)

    def crashing(self, at: Mapping[int, Sentinel]) -> TestStream:
        """The same input with other crashes: at the end of the micro-batches with these numbers, counted from 0."""
        batches = (replace(batch, then=at.get(number)) for number, batch in enumerate(self.batches))
        return replace(self, batches=tuple(batches))

    def records(self) -> Iterator[dict[str, Any]]:
        """All records, in order of arrival."""
        return (e.record for batch in self.batches for e in batch.entries if isinstance(e, Arrival))

    def entries(self) -> list[tuple[Entry, ...]]:
        """The entries of each micro-batch."""
        return [batch.entries for batch in self.batches]

    def by_topic(self) -> dict[str, list[Arrival]]:
        """All records with their arrival, by topic."""
        arrivals = [e for batch in self.batches for e in batch.entries if isinstance(e, Arrival)]
        return {topic: [a for a in arrivals if a.topic == topic] for topic in self.topics}

    def places(self) -> list[tuple[str, int]]:
        """All source partitions."""
        return [(topic, partition) for topic in self.topics for partition in range(self.partitions)]

    def _begun(self) -> TestStream:
        """Begins with a micro-batch in which writers have no watermark yet, so that records move none."""
        if self.batches:
            return self
        return self._batch(tuple(Watermark(t, p, self.now, NEVER) for t, p in self.places()))

    def _batch(self, entries: tuple[Entry, ...], then: Sentinel | None = None) -> TestStream:
        return replace(self, batches=(*self.batches, Batch(entries, then)))

    def _then(self, sentinel: Sentinel) -> TestStream:
        return replace(self, batches=(*self.batches[:-1], replace(self.batches[-1], then=sentinel)))
