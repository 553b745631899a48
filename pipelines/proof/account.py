"""What a version has said of an incident: the incident as it was last written, and the verdicts on its series."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import orjson
from elasticsearch.helpers import scan

from engine.kafka.content import content
from pipelines.contracts import topics
from pipelines.contracts.elasticsearch_client import elasticsearch_client
from pipelines.contracts.records import Incident
from pipelines.contracts.records.novelty import judged_metric
from pipelines.contracts.settings import Settings
from pipelines.jobs.sink.partition import Partition
from pipelines.query import incidents as stored

Key = tuple[str, str, int, int]
"""Identity of a verdict: machine, metric, first instant of the window, its end."""

_PAGE = 5_000
_SOONEST = 1_000_000_000_000
"""Revisions of incidents of earlier releases are counts, which are less than any event time of today."""


@dataclass(frozen=True)
class Account:
    """What a version has said of an incident.

    Attributes:
        incident: The newest revision of the incident.
        verdicts: The newest revision of each verdict on its series while it lasted, as JSON, by identity.
        written: When the incident was first written, epoch milliseconds; of documents: when it was written last.
    """

    incident: Incident
    verdicts: Mapping[Key, Mapping[str, Any]]
    written: int

    @property
    def until(self) -> int:
        """The event time that had been seen when the last of this was said, epoch milliseconds."""
        said = [key[3] + int(verdict.get("revision", 0)) for key, verdict in self.verdicts.items()]
        return max(_seen(self.incident), *said, 0)


def read(settings: Settings, name: str) -> Account:
    """What the topics of a version hold of an incident.

    Args:
        settings: The settings of the version, with the address of Kafka filled in.
        name: Id of the incident, or the beginning of it.

    Raises:
        NewnormalError: ``INCIDENT_UNKNOWN``, ``TOPIC_UNKNOWN``, ``KAFKA_READ_FAILED``.
    """
    incident = stored.named(stored.incidents(settings), name)
    written = stored.first_written(settings, incident)
    return Account(incident, verdicts_on(settings, incident), incident.updated if written is None else written)


def verdicts_on(settings: Settings, incident: Incident) -> Mapping[Key, Mapping[str, Any]]:
    """The newest revision of each verdict on the series of an incident that the topic of a version holds."""
    messages = content(settings.kafka.bootstrap or "", settings.reads(topics.NOVELTIES))
    return _newest((_json(message.value()) for message in messages), incident)


def read_documents(settings: Settings, name: str) -> Account:
    """What the indices of a version hold of an incident, which may be kept for longer than its topics.

    Args:
        settings: The settings of the version, with the address of Elasticsearch filled in.
        name: As for `read`.

    Raises:
        NewnormalError: ``INCIDENT_UNKNOWN``.
    """
    with elasticsearch_client(settings.elasticsearch.url or "", request_timeout=60) as client:

        def found(index: str, query: dict[str, Any]) -> Iterable[dict[str, Any]]:
            names = ",".join(Partition(index, 0).patterns)
            hits = scan(
                client, {"query": query}, index=names, size=_PAGE, ignore_unavailable=True, allow_no_indices=True
            )
            return (hit["_source"] for hit in hits)

        documents = list(found(settings.incident_index, {"prefix": {"event.id": name}}))
        incident = stored.named((Incident.from_json(orjson.dumps(each)) for each in documents), name)
        entities = sorted({each.entity for each in incident.series})
        verdicts = _newest(found(settings.index, {"terms": {"host.name": entities}}), incident)
    return Account(incident, verdicts, incident.updated if incident.ingested is None else incident.ingested)


def _newest(verdicts: Iterable[Any], incident: Incident) -> dict[Key, Mapping[str, Any]]:
    """Of each verdict on a series of an incident while it lasted, also beside its peers, the one that counts."""
    series = {(each.entity, each.metric) for each in incident.series}
    until = _seen(incident) if incident.end is None else incident.end
    newest: dict[Key, Mapping[str, Any]] = {}
    for each in verdicts:
        name, metric = (each.get("host.name"), each.get("metric")) if isinstance(each, dict) else (None, None)
        if not (isinstance(name, str) and isinstance(metric, str)):
            continue
        if (name, metric) not in series and (name, judged_metric(metric)) not in series:
            continue
        numbers = [each.get(field, 0) for field in ("window_start", "@timestamp", "revision")]
        if not all(type(number) is int for number in numbers):
            continue  # the sink sends it to the dead letters
        key = name, metric, numbers[0], numbers[1]
        if key[2] < incident.start or key[3] > until:
            continue
        if key not in newest or newest[key].get("revision", 0) <= each.get("revision", 0):
            newest[key] = each
    return newest


def _seen(incident: Incident) -> int:
    """The event time up to which an incident was seen, epoch milliseconds."""
    return max(incident.updated, incident.revision if incident.revision > _SOONEST else 0)


def _json(value: bytes | None) -> Any:
    """A message as JSON; ``None`` if it is none: the sink sends it to the dead letters."""
    try:
        return orjson.loads(value or b"null")
    except orjson.JSONDecodeError:
        return None
