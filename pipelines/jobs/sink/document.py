"""The values that go into the sink and come back from it: documents, rejections, news, outcomes."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import NamedTuple

from pipelines.contracts.records import Novelty
from pipelines.contracts.records.novelty import NEWS_KINDS


class SinkDocument(NamedTuple):
    """One message of the topic, as it was read.

    Attributes:
        raw: The bytes of the message, not parsed yet.
        origin: Where the message came from, e.g. ``novelties/3@1042``; the sink returns it unchanged.
    """

    raw: bytes
    origin: str = ""


@dataclass(frozen=True)
class Rejected:
    """A document that can never be stored because it is wrong itself; it goes to the dead-letter topic.

    Attributes:
        document: The document as it was handed in.
        code: ``INVALID_JSON``, ``INVALID_RECORD``, ``TIME_OUT_OF_RANGE``, ``TOO_LARGE`` or ``DOCUMENT_REFUSED``.
        reason: What is wrong, in words; for ``DOCUMENT_REFUSED`` it begins with the type of Elasticsearch's error.
    """

    document: SinkDocument
    code: str
    reason: str


@dataclass(frozen=True)
class IndexedNews:
    """A stored document that may change which series have open news.

    That is a verdict that is news, ends an incident, or is a revision, which may take news back.

    Attributes:
        entity: Name of the machine.
        metric: Name of the metric.
        kind: Kind of the verdict.
        time: End of the verdict's window, epoch milliseconds.
        closes: True if the verdict ends the incident of its series.
    """

    entity: str
    metric: str
    kind: str
    time: int
    closes: bool = False

    @classmethod
    def of(cls, record: Novelty) -> IndexedNews | None:
        """The news in a verdict; ``None`` if it is no news, ends no incident and is no revision."""
        closes = record.incident_state == "closed"
        if closes or record.kind in NEWS_KINDS or record.revision:
            return cls(record.entity, record.metric, record.kind, record.window_end, closes)
        return None


@dataclass(frozen=True)
class SinkOutcome:
    """The outcome of one call of `Sink.write`: each document was indexed, superseded or rejected.

    Attributes:
        indexed: Number of documents that this call stored.
        superseded: Number of documents not stored because the index or the same call has a higher revision.
        rejected: The documents that can never be stored.
        times: Event time (``@timestamp``) of each stored document, epoch milliseconds.
        news: The news among the stored documents.
        searchable_at_ms: When all stored documents could be found by a search, epoch milliseconds; ``None`` if none was
            stored.
    """

    indexed: int = 0
    superseded: int = 0
    rejected: tuple[Rejected, ...] = ()
    times: tuple[int, ...] = field(default=(), repr=False)
    news: tuple[IndexedNews, ...] = field(default=(), repr=False)
    searchable_at_ms: int | None = None

    def plus(self, other: SinkOutcome) -> SinkOutcome:
        """The counts of both, and the rejected documents of both; times and news are those of this one.

        >>> SinkOutcome(indexed=2).plus(SinkOutcome(indexed=1, superseded=1)).indexed
        3
        """
        return replace(
            self,
            indexed=self.indexed + other.indexed,
            superseded=self.superseded + other.superseded,
            rejected=(*self.rejected, *other.rejected),
        )

    def latencies_ms(self) -> list[int]:
        """For each stored document the time from its window's end until a search finds it, milliseconds.

        The figures make sense for live data only, not for history that is played.

        >>> SinkOutcome(indexed=2, times=(1_000, 3_000), searchable_at_ms=3_500).latencies_ms()
        [2500, 500]
        """
        return [] if self.searchable_at_ms is None else [self.searchable_at_ms - time for time in self.times]
