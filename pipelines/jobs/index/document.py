"""What goes into the sink and what comes back. Knows no server."""

from __future__ import annotations

from dataclasses import dataclass, field

from engine.spec.record import Record
from pipelines.contracts.records import Novelty
from pipelines.contracts.records.novelty import NEWS_KINDS


@dataclass(frozen=True)
class SinkDocument:
    """One record as it came from its topic.

    Attributes:
        raw: The record's JSON, unparsed: whatever bytes the topic held.
        origin: Where it came from (``novelties/3@1042``), for the dead letter; the sink does not look at it.
    """

    raw: bytes
    origin: str = ""


@dataclass(frozen=True)
class Rejected:
    """A document that cannot be stored, ever, through its own fault: for the dead-letter topic.

    Attributes:
        document: The document as it was handed in.
        code: ``INVALID_JSON``, ``INVALID_RECORD``, ``TIME_OUT_OF_RANGE``, ``TOO_LARGE``, or ``DOCUMENT_REFUSED``: then
            the reason begins with the type of Elasticsearch's error.
        reason: What is wrong, in words.
    """

    document: SinkDocument
    code: str
    reason: str


@dataclass(frozen=True)
class IndexedNews:
    """A document that is news, ends an incident, or takes news back: a revision of any kind.

    Attributes:
        entity: The machine.
        metric: Its metric.
        kind: What kind of verdict it is.
        time: End of its window, epoch milliseconds.
        closes: Whether the series' incident is over with it.
    """

    entity: str
    metric: str
    kind: str
    time: int
    closes: bool = False

    @classmethod
    def of(cls, record: Record) -> IndexedNews | None:
        """The news in a record; ``None`` if it is not news and revises none."""
        if not isinstance(record, Novelty):
            return None
        closes = record.incident_state == "closed"
        if closes or record.kind in NEWS_KINDS or record.revision:
            return cls(record.entity, record.metric, record.kind, record.window_end, closes)
        return None


@dataclass(frozen=True)
class SinkOutcome:
    """What became of one call of `Sink.write`: each document is in exactly one of the three groups.

    Attributes:
        indexed: Documents that this call stored.
        superseded: Documents not stored because a higher revision is there, in the index or in the same call.
        rejected: Documents that cannot be stored.
        times: Event time (``@timestamp``) of each document stored.
        news: Those of the documents stored that are news.
        searchable_at_ms: When all of them were seen to be searchable; ``None`` if none was stored.
    """

    indexed: int = 0
    superseded: int = 0
    rejected: tuple[Rejected, ...] = ()
    times: tuple[int, ...] = field(default=(), repr=False)
    news: tuple[IndexedNews, ...] = field(default=(), repr=False)
    searchable_at_ms: int | None = None

    def latencies_ms(self) -> list[int]:
        """Window end to searchable, of each document stored; meaningful for live data, not for played old data.

        >>> SinkOutcome(indexed=2, times=(1_000, 3_000), searchable_at_ms=3_500).latencies_ms()
        [2500, 500]
        """
        return [] if self.searchable_at_ms is None else [self.searchable_at_ms - time for time in self.times]
