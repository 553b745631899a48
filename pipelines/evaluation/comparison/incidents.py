"""The incidents of two versions, which are what operators get: how many, how large, how often they would be told."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from engine.spec.duration import iso
from pipelines.contracts.records import Incident
from pipelines.contracts.records.severity import SEVERITIES
from pipelines.evaluation.comparison.messages import Listener, messages
from pipelines.notify.news import NewsState

History = tuple[Incident, ...]
"""The revisions of one incident, the lowest first."""


@dataclass(frozen=True)
class Incidents:
    """The incidents of one version within the compared times.

    Attributes:
        last: Each as it was last; one that became a part of another is not counted.
        messages: For each listener the number of messages by what they say.
        only: Those of which the other version has nothing: no incident at that time on one of their machines.
        left_out: Number of incidents outside the compared times.
    """

    last: tuple[Incident, ...]
    messages: dict[Listener, Counter[NewsState]]
    only: tuple[Incident, ...]
    left_out: int

    @property
    def severities(self) -> dict[str, int]:
        """Number of incidents by severity, the highest first."""
        counts = Counter(each.severity for each in self.last)
        return {severity: counts[severity] for severity in reversed(SEVERITIES) if counts[severity]}

    @property
    def largest(self) -> Incident | None:
        """The incident with most machines, and among these with most series."""
        return max(self.last, key=lambda each: (each.machine_count, each.series_count), default=None)

    def figures(self) -> dict[str, Any]:
        """All figures as JSON."""
        largest = self.largest
        return {
            "incidents": len(self.last),
            "severities": self.severities,
            "largest": largest and _readable(largest),
            "messages": {
                each.name or "any channel": {"all": told.total(), **told} for each, told in self.messages.items()
            },
            "only_in_this_version": [_readable(each) for each in self.only],
            "left_out": self.left_out,
        }


def incidents(
    histories: tuple[Sequence[History], Sequence[History]],
    listeners: Sequence[Listener],
    start: int,
    end: int,
    apart: int,
) -> tuple[Incidents, Incidents]:
    """The incidents of two versions.

    Args:
        histories: The incidents of both, each with all its revisions.
        listeners: Who would have been told.
        start: First instant that is compared, epoch milliseconds.
        end: Last instant that is compared.
        apart: Incidents so long after one another are not the same, milliseconds.
    """
    within = [[one for one in version if one[-1].start < end and _end(one[-1]) >= start] for version in histories]
    last = [tuple(one[-1] for one in version if one[-1].status != "merged") for version in within]
    both = []
    for version, (mine, others) in enumerate(((last[0], last[1]), (last[1], last[0]))):
        counts = {it: sum((messages(one, it) for one in within[version]), Counter()) for it in listeners}
        only = tuple(incident for incident in mine if not any(_alike(incident, other, apart) for other in others))
        both.append(Incidents(mine, counts, only, len(histories[version]) - len(within[version])))
    return both[0], both[1]


def _alike(one: Incident, other: Incident, apart: int) -> bool:
    """Whether two incidents of two versions are of one time, and have a machine in common."""
    if one.id == other.id:
        return True
    near = one.start < _end(other) + apart and other.start < _end(one) + apart
    return near and not {each.entity for each in one.machines}.isdisjoint(each.entity for each in other.machines)


def _end(incident: Incident) -> int:
    """When an incident ended; while it lasts, its last change."""
    return incident.updated if incident.end is None else incident.end


def _readable(incident: Incident) -> dict[str, Any]:
    return {
        "id": incident.id,
        "from": iso(incident.start),
        "severity": incident.severity,
        "machines": incident.machine_count,
        "series": incident.series_count,
        "message": incident.message,
    }
