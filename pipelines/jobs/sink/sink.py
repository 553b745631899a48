"""The sink: writes messages to Elasticsearch, and returns an outcome for each. It knows no Spark and no Kafka.

`Sink.write` works in this order, so that no document is lost or stored twice:
1. It parses each message, while others are on their way; one that is no valid record is rejected before any request.
2. It stores documents by `_id` and version, so that this and later calls may repeat any of them.
3. It writes news before quiet windows, as operators wait for it, but the revisions of a record in their order, so that
   the newest of them stays.
4. It refreshes the indices that it wrote.
5. It returns. Only then may the caller commit its own progress.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import urlsplit

import msgspec

from engine.clock import now_ms
from engine.spec.duration import duration_ms, iso
from engine.spec.record import Record
from pipelines.contracts.elasticsearch_client import elasticsearch_client
from pipelines.contracts.records import Novelty
from pipelines.contracts.records.novelty import QUIET_KINDS
from pipelines.contracts.settings import Settings
from pipelines.contracts.version_names import FIRST
from pipelines.jobs.sink.backoff import Backoff, Patience, SinkStoppedError
from pipelines.jobs.sink.bulk import REPLIES, Action, BulkWriter, Limits
from pipelines.jobs.sink.document import IndexedNews, Rejected, SinkDocument, SinkOutcome
from pipelines.jobs.sink.fast_reading import fast_reader
from pipelines.jobs.sink.identity import UnusableError, document_id, parse, time_field, version
from pipelines.jobs.sink.index_template import IndexTemplates
from pipelines.jobs.sink.lanes import Lanes
from pipelines.jobs.sink.partition import Partition
from pipelines.jobs.sink.searchable import Refresher

__all__ = ["Sink", "SinkConfig", "SinkStoppedError"]

_INGESTED = "ingested"
"""Field of the time of storing."""

_QUIET = re.compile(b'"kind": ?"(%s)"' % "|".join(QUIET_KINDS).encode()).search
"""Finds what most messages on quiet windows have in them, before they are parsed. It decides an order only."""


@dataclass(frozen=True)
class SinkConfig:
    """Where and how documents are stored.

    Attributes:
        url: Address of Elasticsearch, ``http://host:port``.
        index: First part of the indices' names.
        alias: Alias through which one version of the indices is read.
        shown: True if the indices join the alias unless it shows others already.
        daily: True if what is recent has an index for each day; all else has one for each month.
        refresh_ms: Longest time until a search finds a stored document, and shortest time between two refreshes that
            the sink makes; milliseconds.
        replicas: Copies of each shard; ``None``: 0 if the cluster has one data node, else 1.
        limits: Bounds of a bulk request.
        backoff: Pauses between retries while the server is down.
        timeout_s: Longest wait for one answer, seconds.
    """

    url: str
    index: str = "novelties"
    alias: str = "novelties"
    shown: bool = True
    daily: bool = True
    refresh_ms: int = 500
    replicas: int | None = None
    limits: Limits = field(default_factory=Limits)
    backoff: Backoff = field(default_factory=Backoff)
    timeout_s: float = 30.0

    @classmethod
    def of(cls, settings: Settings, url: str) -> SinkConfig:
        """The configuration from the settings, for the Elasticsearch at an address."""
        refresh_ms = duration_ms(settings.elasticsearch.refresh)
        first = settings.version == FIRST
        return cls(url=url, index=settings.index, alias=settings.alias, shown=first, refresh_ms=refresh_ms)

    @classmethod
    def of_incidents(cls, settings: Settings, url: str) -> SinkConfig:
        """The same for incidents."""
        return replace(cls.of(settings, url), index=settings.incident_index, alias=settings.incident_alias)

    @classmethod
    def of_changes(cls, settings: Settings, url: str) -> SinkConfig:
        """The same for changes, which are few: each version writes the same documents to the same indices."""
        alias = settings.change_alias
        return replace(cls.of(settings, url), index=alias, alias=alias, shown=True, daily=False)


class Sink:
    """Writes records of one type to Elasticsearch. Only one thread at a time may call `write`.

    Args:
        config: Where and how documents are stored.
        record: Type of the records.
        stop: When set, waiting ends with a `SinkStoppedError`.
    """

    def __init__(self, config: SinkConfig, record: type[Record] = Novelty, stop: threading.Event | None = None) -> None:
        self._record, self._stop = record, stop or threading.Event()
        self._largest = config.limits.document_bytes
        self._client = elasticsearch_client(
            config.url, max_retries=0, retry_on_timeout=False, request_timeout=config.timeout_s, serializers=REPLIES
        )
        address = urlsplit(config.url)
        self._patience = Patience(
            config.backoff, self._stop, f"{address.hostname}:{address.port}"
        )  # without user and password
        self._templates = IndexTemplates(
            self._client,
            config.index,
            config.alias,
            record,
            shown=config.shown,
            daily=config.daily,
            refresh_ms=config.refresh_ms,
            replicas=config.replicas,
        )
        writer = BulkWriter(self._client, config.limits, self._patience, recover=self._templates.ensure)
        self._lanes = Lanes(writer, config.limits.connections, config.limits.documents)
        self._read, self._reports = fast_reader(record), issubclass(record, Novelty)
        self._time, ingested = time_field(record), record.model_fields.get(_INGESTED)
        self._ingested = (ingested.alias or _INGESTED).encode() if ingested else b""
        everything = ",".join(Partition(config.index, 0).patterns)
        self._refresher = Refresher(self._client, everything, config.refresh_ms, self._patience, self._stop)
        self._partition: Partition | None = None

    def open(self) -> Partition:
        """Waits for the server, and creates the index template. `write` does this if it was not done before.

        Raises:
            NewnormalError: If the server cannot be used, see `IndexTemplates.ensure` and `Patience.insist`.
        """
        if self._partition is None:
            self._partition = self._patience.insist(self._templates.ensure)
        return self._partition

    def write(self, documents: Collection[SinkDocument]) -> SinkOutcome:
        """Stores the documents; returns when each is stored and searchable, superseded, or rejected.

        Raises:
            NewnormalError: If the server cannot be used; a `SinkStoppedError` if the sink is stopped. Some documents
                may be stored then; the call may be repeated.
        """
        partition = self.open()
        rejected: list[Rejected] = []
        older: list[Action] = []
        now = now_ms()

        def usable(places: Iterable[tuple[int, SinkDocument]]) -> Iterator[tuple[int, Action]]:
            for place, document in places:
                try:
                    yield place, self._action(document, partition, now)
                except UnusableError as error:
                    rejected.append(Rejected(document, error.code, error.reason))

        def news_first() -> Iterator[Action]:
            quiet: list[tuple[int, SinkDocument]] = []
            ahead: list[tuple[int, SinkDocument]] = []
            for place, document in enumerate(documents):
                (quiet if _QUIET(document.raw) else ahead).append((place, document))
            newest: dict[str, tuple[int, int]] = {}  # revision and place of what goes ahead
            for place, action in usable(ahead):
                newest[action.id] = max((action.version, place), newest.get(action.id, (action.version, place)))
                yield action
            for place, action in usable(quiet):
                if action.id in newest and (action.version, place) < newest[action.id]:
                    older.append(action)
                else:
                    yield action

        done = self._lanes.write(news_first(), len(documents))
        searchable = self._refresher.refresh({action.index for action in done.stored}) if done.stored else None
        return SinkOutcome(
            indexed=len(done.stored),
            superseded=done.superseded + len(older),
            rejected=(*rejected, *done.rejected),
            times=tuple(action.time for action in done.stored),
            news=tuple(action.news for action in done.stored if action.news),
            searchable_at_ms=searchable,
        )

    def problem(self) -> str | None:
        """Why Elasticsearch has taken no documents for some seconds; ``None`` if all is well. Thread-safe."""
        return self._patience.problem()

    def close(self) -> None:
        """Stops all waiting, and closes the connections."""
        self._stop.set()
        self._client.close()

    def _action(self, document: SinkDocument, partition: Partition, now: int) -> Action:
        raw = document.raw
        record, missing, as_it_is = self._parsed(raw)
        at: int = getattr(record, self._time)
        index = partition.index(at)
        if index is None:
            raise UnusableError("TIME_OUT_OF_RANGE", f"{at} ms is before 1970 or after {iso(4_102_444_800_000)}")
        if as_it_is:
            body = b'%s,"%s":%d}' % (raw.rstrip()[:-1], self._ingested, now) if missing else raw
        else:
            body = (record.model_copy(update={_INGESTED: now}) if missing else record).to_json()
        if len(body) > self._largest:
            raise UnusableError("TOO_LARGE", f"{len(body)} bytes; at most {self._largest} are stored")
        news = IndexedNews.of(record) if self._reports else None
        return Action(document, index, document_id(record), version(record), at, body, news)

    def _parsed(self, raw: bytes) -> tuple[Any, bool, bool]:
        """Reads a message.

        Returns:
            The record, or what `fast_reader` makes of it; True if it has no time of storing but needs one; True if the
            bytes can be stored as they are, apart from that time.

        Raises:
            UnusableError: If the bytes are not such a record.
        """
        if self._read and b"\n" not in raw and b"\r" not in raw:
            try:
                record_read = self._read(raw)
            except (msgspec.MsgspecError, UnicodeDecodeError):
                record_read = None  # pydantic decides, and says why
            stored = record_read.ingested if record_read and self._ingested else 0
            if record_read and stored is not None:  # else null stands there, and must be replaced
                return record_read, stored is msgspec.UNSET, True
        record, as_it_is = parse(raw, self._record)
        missing = bool(self._ingested) and getattr(record, _INGESTED) is None
        return record, missing, as_it_is and not (missing and _INGESTED in record.model_fields_set)
