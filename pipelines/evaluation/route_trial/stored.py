"""Reads what is stored of incidents: their last revisions from Elasticsearch, those before from Kafka.

Of an incident that is older than what Kafka keeps, only the last revision is known. It is taken to have been from its
beginning what it was at its end; when it was acknowledged stands in the topic `acknowledgements`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import orjson
from elasticsearch.helpers import scan

from engine.kafka.content import content
from engine.spec.errors import NewnormalError
from pipelines.contracts import topics
from pipelines.contracts.elasticsearch_client import elasticsearch_client
from pipelines.contracts.records import Acknowledgement, Incident
from pipelines.contracts.settings import Settings
from pipelines.query.control_topics import acknowledgements

_INCIDENTS, _REVISIONS = 10_000, 100_000
"""So many incidents and revisions are read at most: it bounds memory and time."""

Read = tuple[int, Incident]
"""A revision of an incident, and when it is read, epoch milliseconds of event time."""


@dataclass(frozen=True)
class StoredIncidents:
    """The incidents that were first reported in a time.

    Attributes:
        last: The last revision of each, by id.
        revisions: All that is known of them, in order.
        known_from: Event time from which on all revisions are known, epoch milliseconds; ``None``: of none.
        bare: How many incidents only the last revision is known of.
    """

    last: Mapping[str, Incident]
    revisions: Sequence[Read]
    known_from: int | None
    bare: int


def stored_incidents(
    settings: Settings, start: int, end: int, most: tuple[int, int] = (_INCIDENTS, _REVISIONS)
) -> StoredIncidents:
    """The incidents that were first reported in a time.

    Args:
        settings: The settings of the version that is shown, with the servers' addresses filled in.
        start: First instant, epoch milliseconds.
        end: Last instant, exclusive.
        most: So many incidents and revisions are read at most.

    Raises:
        NewnormalError: ``VERSION_EMPTY`` if there are none; ``USAGE_INVALID`` if there are more than ``most``;
            ``KAFKA_READ_FAILED``.
        elasticsearch.ApiError: Elasticsearch refuses; a `TransportError` if it does not answer.
    """
    last = _last(settings, start, end, most[0])
    if not last:
        what, accepted = "no incident is stored that was first reported in that time", "a time with incidents"
        raise NewnormalError("VERSION_EMPTY", what, settings.incident_alias, accepted, "nothing was tried")
    known: dict[str, dict[int, Incident]] = {name: {it.revision: it} for name, it in last.items()}
    known_from: int | None = None
    count = len(known)
    try:
        messages = content(settings.kafka.bootstrap or "", settings.reads(topics.INCIDENTS))
        for message in messages:
            with suppress(ValueError):  # a heartbeat; or what the sink sends to the dead letters
                name, seen = _named(message.value() or b"")
                known_from = seen if known_from is None else min(known_from, seen)
                if name in known:
                    incident = Incident.from_json(message.value() or b"")
                    count += incident.revision not in known[name]
                    _refuse_more_than(most[1], count, "revisions of incidents")
                    known[name].setdefault(incident.revision, incident)
    except NewnormalError as error:
        if error.code != "TOPIC_UNKNOWN":
            raise
    bare = [name for name, it in last.items() if known_from is None or it.opened < known_from]
    said = {each.incident: each for each in acknowledgements(settings)} if bare else {}
    for name in bare:
        known[name] = _from_the_beginning(list(known[name].values()), said.get(name))
    reads = [read for own in known.values() for read in _in_order(list(own.values()))]
    return StoredIncidents(last, sorted(reads, key=lambda each: each[0]), known_from, len(bare))


def _named(value: bytes) -> tuple[str, int]:
    """The id of a message of the topic `incidents`, and the event time at which it was written at the earliest.

    Raises:
        ValueError: The message is no incident.
    """
    fields = orjson.loads(value)
    if not isinstance(fields, dict) or "event.id" not in fields:
        raise ValueError("no incident")
    return str(fields["event.id"]), max(int(fields.get("updated", 0)), int(fields.get("revision", 0)))


def _last(settings: Settings, start: int, end: int, most: int) -> dict[str, Incident]:
    query = {"range": {"@timestamp": {"gte": start, "lt": end, "format": "epoch_millis"}}}
    there: dict[str, Any] = {"index": settings.incident_alias, "ignore_unavailable": True, "allow_no_indices": True}
    with elasticsearch_client(settings.elasticsearch.url or "", request_timeout=60) as client:
        _refuse_more_than(most, int(client.count(**there, query=query)["count"]), "incidents")
        hits = scan(client, {"query": query, "_source": {"excludes": ["candidates", "log_changes"]}}, **there)
        found = [Incident.model_validate(hit["_source"]) for hit in hits]
    return {each.id: each for each in sorted(found, key=lambda it: it.revision)}


def _from_the_beginning(revisions: Sequence[Incident], said: Acknowledgement | None) -> dict[int, Incident]:
    """Adds what an incident is taken to have been when it opened, and when it was acknowledged."""
    ordered = sorted(revisions, key=lambda it: it.revision)
    first = ordered[0]
    before: dict[str, Any] = {"acknowledged_by": None, "note": None, "merged_into": None, "end": None}
    opened = first.model_copy(
        update={**before, "status": "open", "updated": first.opened, "reopenings": 0, "revision": -2}
    )
    found = {-2: opened} if first.updated > first.opened else {}
    if said and said.active and first.opened <= said.time < first.updated:
        found[-1] = opened.model_copy(
            update={"status": "acknowledged", "acknowledged_by": said.by or None, "updated": said.time, "revision": -1}
        )
    return found | {it.revision: it for it in ordered}


def _in_order(revisions: Sequence[Incident]) -> list[Read]:
    """Each revision at the event time of what changed with it, and none before an earlier one."""
    at, found = 0, []
    for each in sorted(revisions, key=lambda it: it.revision):
        at = max(at, each.updated)
        found.append((at, each))
    return found


def _refuse_more_than(most: int, count: int, of: str) -> None:
    if count > most:
        what = f"more than {most:,} {of} are stored of that time"
        raise NewnormalError(
            "USAGE_INVALID", what, "notify try", "a shorter time (--from, --until)", "nothing was tried"
        )
