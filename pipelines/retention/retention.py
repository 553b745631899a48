"""Deletes what is older than the policy says: indices, days of the archive, and late records; never what is needed.

The ages are those of event times; an incident has the age of its end, or, while it stands, of when it was last seen. A
version that was replayed keeps its indices for as long after it was made, so that it can be compared; days of the
archive stay while a replay, or a job that goes on from the archive, has not read them.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal, Self

import structlog
from confluent_kafka import KafkaException
from elasticsearch import ApiError, AuthorizationException, Elasticsearch, NotFoundError, TransportError

from engine.clock import now_ms
from engine.kafka.admin import change_configs
from engine.spark.checkpoint_offsets import committed_offsets
from engine.spec.duration import duration_ms
from engine.spec.errors import NewnormalError
from pipelines.contracts import topics
from pipelines.contracts.elasticsearch_client import elasticsearch_client, reason
from pipelines.contracts.records.incident import STANDING
from pipelines.contracts.settings import Settings
from pipelines.jobs.archive.archived import archived
from pipelines.jobs.archive.layout import DAY_MS, TopicFolder, Write
from pipelines.jobs.links import LINKS
from pipelines.jobs.sink.partition import Partition
from pipelines.runtime.archived_input import reads_archive
from pipelines.savepoints.catalogue import Catalogue
from pipelines.versions.registry import Registry
from pipelines.versions.version import Version

log = structlog.get_logger()
_DATED = re.compile(r"-(\d{4})\.(\d{2})(?:\.(\d{2}))?$")


@dataclass(frozen=True)
class Old:
    """Something that is older than the policy says.

    Attributes:
        kind: What it is.
        name: Its name; for a day of the archive ``telemetry/day=2026-11-22``.
        end: End of its event times, epoch milliseconds.
        size: Its size, bytes.
        needed: Who needs it, in words; empty: it goes.
    """

    kind: Literal["index", "archive"]
    name: str
    end: int
    size: int
    needed: str = ""


class Retention:
    """What is older than the policy of some settings says, and its deletion.

    Args:
        settings: The settings, with the servers' addresses filled in.
        registry: The versions.
    """

    def __init__(self, settings: Settings, registry: Registry) -> None:
        self._settings, self._registry = settings, registry

    def find(self, now: int) -> list[Old]:
        """All that is too old at an instant (epoch milliseconds), the oldest first.

        Raises:
            NewnormalError: ``KAFKA_UNREACHABLE``, ``KAFKA_READ_FAILED``; ``ARCHIVE_BROKEN``.
            elasticsearch.ApiError: Elasticsearch refuses; a `TransportError` if it does not answer.
        """
        versions = list(self._registry.all().values())
        found = [*self._indices(versions, now), *self._days(versions, now)]
        return sorted(found, key=lambda old: (old.end, old.name))

    def delete(self, candidates: Iterable[Old]) -> list[Old]:
        """Deletes what nobody needs; returns it. A repetition completes what was interrupted."""
        gone = [old for old in candidates if not old.needed]
        indices = [old.name for old in gone if old.kind == "index"]
        if indices:
            client = self._client()
            try:
                for name in indices:
                    client.options(ignore_status=404).indices.delete(index=name)
            finally:
                client.close()
        days = {old.name for old in gone if old.kind == "archive"}
        for folder, _ in archived(self._settings):
            for day in folder.days():
                if f"{folder.topic}/day={day}" in days:
                    folder.delete_day(day)
            folder.forget()
        return gone

    def late_topics(self) -> dict[str, dict[str, tuple[str, str]]]:
        """Gives the topics of late records of all versions the retention that was chosen; returns what has changed."""
        late = [name for name in topics.NAMES if name.endswith(topics.LATE)]
        configs = {
            self._settings.of(version.names).writes(name): self._settings.chosen_retention(name)
            for version in self._registry.all().values()
            for name in late
        }
        return change_configs(self._settings.kafka.bootstrap or "", configs)

    def _indices(self, versions: Iterable[Version], now: int) -> Iterator[Old]:
        kept = self._settings.retention.indices
        if kept is None:
            return
        before, client = now - duration_ms(kept), self._client()
        try:
            its = [(v, self._settings.of(v.names)) for v in versions]
            bases = [(v, base) for v, settings in its for base in (settings.index, settings.incident_index)]
            for version, base in [*bases, (None, self._settings.change_alias)]:
                partition = Partition(base, 0)
                try:
                    stats = client.indices.stats(index=",".join(partition.patterns), metric="store")["indices"]
                except NotFoundError:
                    continue
                except AuthorizationException as error:
                    if version is not None:
                        raise
                    log.warning(
                        "indices of changes are not deleted, as the account lacks privileges", reason=reason(error)
                    )
                    continue
                new = f"version {version.name} is new" if version and version.created > before else ""
                for name, index in stats.items():
                    end = index_end(name)
                    if end is not None and end <= before:
                        of_incidents = version and base == self._settings.of(version.names).incident_index
                        needed = new or (_incidents_in(client, name, before) if of_incidents else "")
                        yield Old("index", name, end, index["total"]["store"]["size_in_bytes"], needed)
        finally:
            client.close()

    def _days(self, versions: Iterable[Version], now: int) -> Iterator[Old]:
        kept = self._settings.retention.archive
        if kept is None:
            return
        before, versions = now - duration_ms(kept), list(versions)
        for folder, _ in archived(self._settings):
            old = [day for day in folder.days() if day_end(day) <= before]
            needed = self._needed(folder, versions) if old else {}
            for day in old:
                size = sum(file.stat().st_size for file in folder.day(day).glob("*"))
                yield Old("archive", f"{folder.topic}/day={day}", day_end(day), size, needed.get(day, ""))

    def _needed(self, folder: TopicFolder, versions: Iterable[Version]) -> dict[str, str]:
        """The days of a topic that are still needed, and by whom."""
        needed: dict[str, str] = {}
        writes = folder.writes()
        for version in versions:
            for places in self._places(version, folder.topic):
                needed |= {
                    day: f"version {version.name} reads it"
                    for day in _from(writes, places)
                    if version.start is None or day_end(day) > version.start
                }
            for savepoint in Catalogue(self._settings.of(version.names)).all():
                for job in savepoint.jobs.values():
                    if places := _of(job.offsets, folder.topic):
                        needed |= dict.fromkeys(_from(writes, places), f"savepoint {savepoint.name} needs it")
        return needed

    def _places(self, version: Version, topic: str) -> Iterator[dict[int, int]]:
        """Where the jobs of a version stand that read a topic from the archive, or may begin to."""
        mine = self._settings.of(version.names)
        for name in version.jobs:
            if topic not in LINKS[name].reads(mine) or not LINKS[name].replayed:
                continue
            checkpoint = mine.folder("checkpoints") / name
            read = committed_offsets(checkpoint)
            if reads_archive(checkpoint) or (version.start is not None and not version.ended and not read):
                yield _of(read, topic)

    def _client(self) -> Elasticsearch:
        return elasticsearch_client(self._settings.elasticsearch.url or "", request_timeout=30, max_retries=0)


class RegularRetention:
    """A context manager: while it is entered, a thread deletes what is too old, at the start and regularly.

    A failure is logged, and does not matter: the next look finds the same.

    Args:
        settings: The settings, with the servers' addresses filled in.
        registry: The versions.
    """

    def __init__(self, settings: Settings, registry: Registry) -> None:
        self._retention, self._ended = Retention(settings, registry), threading.Event()
        self._seconds = duration_ms(settings.retention.every) / 1000
        self._limited = settings.retention.indices is not None or settings.retention.archive is not None

    def __enter__(self) -> Self:
        if self._limited:
            threading.Thread(target=self._run, daemon=True, name="retention").start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()

    def _run(self) -> None:
        while not self._ended.is_set():
            try:
                for old in self._retention.delete(self._retention.find(now_ms())):
                    log.info("deleted, as it is older than the retention", kind=old.kind, name=old.name, bytes=old.size)
            except (NewnormalError, ApiError, TransportError, KafkaException, OSError) as error:
                log.warning("could not delete what is older than the retention, will try again", reason=str(error))
            self._ended.wait(self._seconds)


def _incidents_in(client: Elasticsearch, index: str, before: int) -> str:
    """Why an index of incidents stays: one of them stands, or was over later than an instant; empty if none was.

    The index of an incident is that of the day on which it opened. One that stands is written again each day, and its
    revision is the event time until which it was seen. If that is before the instant, nobody watches it any more, as
    that of a version with an end or that is gone: it has the age of that time, and does not keep its index for ever.
    """
    stands = {
        "bool": {"filter": [{"terms": {"incident.state": sorted(STANDING)}}, {"range": {"revision": {"gte": before}}}]}
    }
    late = {"range": {"event.end": {"gte": before, "format": "epoch_millis"}}}
    reasons = ((stands, "an incident in it is not over"), (late, "an incident in it ended later"))
    return next((why for query, why in reasons if client.count(index=index, query=query)["count"]), "")


def _of(offsets: Mapping[str, Mapping[str, int]], topic: str) -> dict[int, int]:
    """The offsets of one topic, from those in the form of Spark."""
    return {int(p): offset for p, offset in offsets.get(topic, {}).items()}


def _from(writes: Iterable[Write], places: Mapping[int, int]) -> set[str]:
    """The days of which the archive has records in messages from some offsets on."""
    return {day for w in writes if any(end > places.get(p, 0) for p, end in w.end.items()) for day in w.days}


def index_end(name: str) -> int | None:
    """End of the event times of an index, by its name, epoch milliseconds; ``None`` if the name has no date.

    >>> from engine.spec.duration import iso
    >>> iso(index_end("novelties-2026.11.22")), iso(index_end("novelties-v2-2026.12"))
    ('2026-11-23T00:00:00.000Z', '2027-01-01T00:00:00.000Z')
    """
    found = _DATED.search(name)
    if found is None:
        return None
    year, month, day = int(found[1]), int(found[2]), found[3]
    if day:
        return int(datetime(year, month, int(day), tzinfo=UTC).timestamp() * 1000) + DAY_MS
    return int(datetime(year + month // 12, month % 12 + 1, 1, tzinfo=UTC).timestamp() * 1000)


def day_end(day: str) -> int:
    """End of a day of the archive, epoch milliseconds.

    >>> day_end("1970-01-01") == DAY_MS
    True
    """
    return int(datetime.fromisoformat(day).replace(tzinfo=UTC).timestamp() * 1000) + DAY_MS
