"""What a channel has to be told of an incident, given what it was told before. Knows no clock and no server."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Literal

import orjson

from pipelines.contracts.records import Incident
from pipelines.contracts.records.severity import SEVERITIES, Severity
from pipelines.notify.routing import Duty

NewsState = Literal["opened", "updated", "ongoing", "resolved", "reopened"]
_OVER = ("resolved", "merged")


@dataclass(frozen=True)
class LastReport:
    """What a channel was told last of an incident.

    Attributes:
        state: The state that was told; ``silent``: nothing was told, as it was over before (of an earlier release).
        severity: The highest severity that was told since the incident opened or reopened.
        reopenings: How often the incident had been reopened.
        number: How many messages there were.
        reminder: The last time of a reminder that had passed, epoch milliseconds; 0: none.
    """

    state: NewsState | Literal["silent"]
    severity: Severity
    reopenings: int
    number: int
    reminder: int = 0

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
        reminder: As that of `pipelines.notify.routing.Duty`.
    """

    incident: Incident
    state: NewsState
    before: LastReport | None = None
    tried: LastReport | None = None
    reminder: int = 0

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
        told = self.tried.state, self.tried.severity, self.tried.reopenings
        again = self.state != "ongoing" or self.tried.reminder == self.reminder
        return self.tried.number + (self._told() != told or not again)

    @property
    def rank(self) -> int:
        """How severe it is, from 0; the end of an incident is as severe as its beginning was."""
        return max(_rank(self.incident.severity), _rank(self.before.severity) if self.before else 0)

    def as_report(self) -> LastReport:
        """What the channel was told last when it has been told this."""
        return LastReport(*self._told(), self.number, max(self.reminder, self.before.reminder if self.before else 0))

    def _told(self) -> tuple[NewsState, Severity, int]:
        severity = SEVERITIES[self.rank] if self.state in ("updated", "ongoing") else self.incident.severity
        return self.state, severity, self.incident.reopenings


def news(incident: Incident, reported: LastReport | None, duty: Duty, tried: LastReport | None = None) -> News | None:
    """What is new about an incident for a channel; ``None``: nothing.

    Args:
        incident: The incident as it is now.
        reported: What the channel was told last of it; ``None``: nothing.
        duty: What the routes say. Of an incident that the channel knows it hears whatever they say.
        tried: What the channel may have been told since, as it is not known whether the message arrived. Of an incident
            that it may know it hears the end, too.
    """
    over, hears = incident.status in _OVER, reported is not None and reported.state not in ("resolved", "silent")
    if over:
        if not hears and tried is not None and tried.state != "resolved":
            return News(incident, "resolved", tried, tried)
        missed = reported is None and incident.status == "resolved" and duty.told
        return News(incident, "resolved", reported, tried) if hears or missed else None
    state: NewsState | None = None
    if not hears or reported is None:
        state = None if not duty.told else "opened" if reported is None else "reopened"
    elif incident.reopenings > reported.reopenings:
        state = "reopened"
    elif _rank(incident.severity) > _rank(reported.severity):
        state = "updated"
    elif duty.reminder > reported.reminder:
        state = "ongoing"
    return News(incident, state, reported, tried, duty.reminder) if state else None


def _rank(severity: Severity) -> int:
    return SEVERITIES.index(severity)
