"""What a channel has to be told of an incident, given what it was told before. Knows no clock and no server."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Literal

import orjson

from pipelines.contracts.records import Incident
from pipelines.contracts.records.severity import SEVERITIES, Severity

NewsState = Literal["opened", "updated", "resolved", "reopened"]
_OVER = ("resolved", "merged")


@dataclass(frozen=True)
class LastReport:
    """What a channel was told last of an incident.

    Attributes:
        state: The state that was told; ``silent``: it was over before the channel began, and nothing was told.
        severity: The highest severity that was told since the incident opened or reopened.
        reopenings: How often the incident had been reopened.
        number: How many messages there were.
    """

    state: NewsState | Literal["silent"]
    severity: Severity
    reopenings: int
    number: int

    def stored(self) -> bytes:
        """The value in the database."""
        return orjson.dumps(asdict(self))

    @classmethod
    def of(cls, value: bytes) -> LastReport:
        """The inverse of `stored`."""
        return cls(**orjson.loads(value))


@dataclass(frozen=True)
class News:
    """Something that a channel has to be told of one incident.

    Attributes:
        incident: The incident as it is now.
        state: What is new about it.
        before: What the channel was told last; ``None``: nothing.
        tried: What it may have been told since by a message of which it is not known whether it arrived.
    """

    incident: Incident
    state: NewsState
    before: LastReport | None = None
    tried: LastReport | None = None

    @property
    def id(self) -> str:
        """The deduplication id: the same whenever the same news are sent again, and different for all others."""
        return f"{self.incident.id}:{self.number}:{self.state}"

    @property
    def number(self) -> int:
        """The number of the message on this incident, from 1.

        News that were tried keep their number; others get the next one, as what was tried may have arrived.
        """
        following = (self.before.number if self.before else 0) + 1
        if self.tried is None or self.tried.number < following:
            return following
        return self.tried.number + (self._told() != (self.tried.state, self.tried.severity, self.tried.reopenings))

    @property
    def rank(self) -> int:
        """How severe it is, from 0; the end of an incident is as severe as its beginning was."""
        return max(_rank(self.incident.severity), _rank(self.before.severity) if self.before else 0)

    def as_report(self) -> LastReport:
        """What the channel was told last when it has been told this."""
        return LastReport(*self._told(), self.number)

    def _told(self) -> tuple[NewsState, Severity, int]:
        severity = SEVERITIES[self.rank] if self.state == "updated" else self.incident.severity
        return self.state, severity, self.incident.reopenings


def news(
    incident: Incident, reported: LastReport | None, least: Severity, tried: LastReport | None = None
) -> News | None:
    """What is new about an incident for a channel; ``None``: nothing.

    Args:
        incident: The incident as it is now.
        reported: What the channel was told last of it; ``None``: nothing.
        least: The severity from which on the channel is told of incidents. Of one that it knows it also hears the end.
        tried: What the channel may have been told since, as it is not known whether the message arrived. Of an incident
            that it may know it hears the end, too.
    """
    over, hears = incident.status in _OVER, reported is not None and reported.state not in ("resolved", "silent")
    if over:
        if not hears and tried is not None and tried.state != "resolved":
            return News(incident, "resolved", tried, tried)
        missed = reported is None and incident.status == "resolved" and _rank(incident.severity) >= _rank(least)
        return News(incident, "resolved", reported, tried) if hears or missed else None
    if not hears or reported is None:
        if _rank(incident.severity) < _rank(least):
            return None
        return News(incident, "opened" if reported is None else "reopened", reported, tried)
    if incident.reopenings > reported.reopenings:
        return News(incident, "reopened", reported, tried)
    return News(incident, "updated", reported, tried) if _rank(incident.severity) > _rank(reported.severity) else None


def silent(incident: Incident) -> LastReport | None:
    """What counts as told of an incident to a channel that begins; ``None``: it is told of this one."""
    return LastReport("silent", incident.severity, incident.reopenings, 0) if incident.status in _OVER else None


def _rank(severity: Severity) -> int:
    return SEVERITIES.index(severity)
