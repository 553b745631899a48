"""Reads the incidents of a version from their topic, and writes operators' acknowledgements of them."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

from pydantic import ValidationError

from engine.formats.heartbeat import HEARTBEAT
from engine.kafka import content as kafka_content
from engine.spec.errors import NewnormalError
from pipelines.contracts import topics
from pipelines.contracts.records import Acknowledgement, Incident
from pipelines.contracts.records.incident import STANDING
from pipelines.contracts.settings import Settings
from pipelines.query.control_topics import checked, write

_FIRST = 86_400_000
"""The first revision is the one of less event time after the opening: later ones may repeat what it said."""


def incidents(settings: Settings) -> list[Incident]:
    """The newest revision of each incident that the topic still holds, the last opened first.

    Args:
        settings: The settings of a version, with the address of Kafka filled in.

    Raises:
        NewnormalError: ``TOPIC_UNKNOWN`` if the incidents job has never run; ``KAFKA_READ_FAILED``.
    """
    newest: dict[str, Incident] = {}
    for value in kafka_content.values(settings.kafka.bootstrap or "", settings.reads(topics.INCIDENTS)):
        if value == HEARTBEAT:
            continue
        with suppress(ValidationError):  # the sink sends such a message to the dead letters
            found = Incident.from_json(value)
            if found.id not in newest or newest[found.id].revision <= found.revision:
                newest[found.id] = found
    return sorted(newest.values(), key=lambda each: (-each.opened, each.id))


def concerns(incident: Incident, machine: str) -> bool:
    """Whether an incident has a machine, or a series of it."""
    return machine in {*(each.entity for each in incident.machines), *(each.entity for each in incident.series)}


def first_written(settings: Settings, incident: Incident) -> int | None:
    """When Kafka took in the first revision of an incident, epoch ms; ``None`` if it no longer holds that revision.

    Args:
        settings: The settings of a version, with the address of Kafka filled in.
        incident: Any revision of the incident.

    Raises:
        NewnormalError: As `incidents`.
    """
    name = incident.id.encode()
    for message in kafka_content.content(settings.kafka.bootstrap or "", settings.reads(topics.INCIDENTS)):
        value = message.value() or b""
        if name not in value:
            continue
        with suppress(ValidationError):
            found = Incident.from_json(value)
            if found.id == incident.id:
                first = found.updated == found.opened and found.revision < found.opened + _FIRST
                return message.timestamp()[1] if first else None
    return None


def novel_until(incident: Incident) -> int | None:
    """When the last novelty of an incident was over, epoch milliseconds; ``None`` while one goes on."""
    if incident.end is not None or incident.open_series:
        return incident.end
    return max((each.end for each in incident.series or () if each.end is not None), default=incident.updated)


def named(incidents: Iterable[Incident], name: str) -> Incident:
    """The incident with an id, or with an id that begins with a text that no other id begins with.

    Raises:
        NewnormalError: ``INCIDENT_UNKNOWN``.
    """
    fitting = {each.id: each for each in incidents if name and each.id.startswith(name)}
    if name in fitting:
        return fitting[name]
    if len(fitting) != 1:
        what = f"{len(fitting)} incidents have ids that begin with {name!r}" if fitting else f"no incident is {name!r}"
        accepted = ", ".join(sorted(fitting)[:5]) or "an id from `newnormal incidents list --all`"
        raise NewnormalError("INCIDENT_UNKNOWN", what, "incidents", accepted, "nothing was written")
    return next(iter(fitting.values()))


def acknowledge(
    settings: Settings, incident: Incident, now: int, *, by: str = "", note: str = "", active: bool = True
) -> Acknowledgement:
    """Writes that an operator looks after an incident, or no longer does; the incidents job then writes a revision.

    Args:
        settings: The settings, with the address of Kafka filled in.
        incident: The incident as it was last read; an acknowledgement is never given before its last change.
        now: The present, epoch milliseconds.
        by: The operator.
        note: A remark.
        active: ``False`` takes the acknowledgement back.

    Raises:
        NewnormalError: ``INCIDENT_OVER`` if it is resolved, or a part of another one; ``ACKNOWLEDGEMENT_INVALID``; as
            `write`.
    """
    if incident.status not in STANDING:
        what = f"incident {incident.id} is {incident.status}"
        accepted = incident.merged_into or f"an incident that is {', '.join(sorted(STANDING))}"
        raise NewnormalError("INCIDENT_OVER", what, "incidents acknowledge", accepted, "nothing was written")
    fields = {"incident": incident.id, "time": max(now, incident.updated), "active": active, "by": by, "note": note}
    given = checked(Acknowledgement, fields, settings, now)
    write(settings, given)
    return given
