"""Tries channels by a message like that of an incident, and routes by an incident that is made up."""

from __future__ import annotations

from dataclasses import dataclass, replace

from engine.clock import now_ms
from engine.spec.errors import NewnormalError
from pipelines.contracts.records import Incident
from pipelines.contracts.records.incident import AffectedMachine, AffectedSeries, Candidate
from pipelines.contracts.records.severity import Severity
from pipelines.contracts.settings.notify import NotifySettings
from pipelines.contracts.settings.routes import Route
from pipelines.notify.channels.senders import sender
from pipelines.notify.left import LeftMails
from pipelines.notify.message import single
from pipelines.notify.news import News
from pipelines.notify.routing import Routing


def try_channel(name: str, settings: NotifySettings) -> str:
    """Sends a message to a channel; returns what it answered.

    Args:
        name: Name of the channel.
        settings: The settings of notifications.

    Raises:
        NewnormalError: ``NOTIFY_CHANNEL_UNKNOWN``, ``NOTIFY_SECRET``, ``NOTIFY_UNREACHABLE`` or ``NOTIFY_REFUSED``.
    """
    if name not in settings.channels:
        known = ", ".join(settings.channels) or "nothing: the settings name no channel"
        raise NewnormalError("NOTIFY_CHANNEL_UNKNOWN", f"there is no channel {name}", "notify.channels", known)
    now = now_ms()
    tried = sender(name, settings)
    news = News(_incident(now), "opened")
    message = single(news, settings.channels[name], settings, "test", tried.escape)
    identity, title = f"test:{now}", f"Test of newnormal notify: {message.title}"
    return tried.send(replace(message, id=identity, state="test", title=title), LeftMails())


@dataclass(frozen=True)
class RouteTried:
    """What one route does with an incident.

    Attributes:
        route: The route.
        why: Why it does not take the incident; empty: it does.
    """

    route: Route
    why: str

    @property
    def escalation(self) -> str:
        """Whom it tells when, if nobody acknowledges the incident."""
        return "; ".join(f"{', '.join(step.channels)} after {step.after}" for step in self.route.escalate)


def try_routes(settings: NotifySettings, machine: str, metric: str, severity: Severity, at: int) -> list[RouteTried]:
    """What each route does with an incident of one series that opens at an instant.

    Args:
        settings: The settings of notifications.
        machine: The machine; empty: the silence of an input, which is of no machine and no metric.
        metric: The metric.
        severity: The severity of the incident.
        at: When it opens, epoch milliseconds.
    """
    incident = _incident(at, machine, metric, severity)
    reasons = Routing.of(settings).reasons(incident, at)
    return [RouteTried(route, reasons[route.name]) for route in settings.all_routes]


def _incident(
    now: int, machine: str = "example-1", metric: str = "example", severity: Severity = "warning"
) -> Incident:
    start, worst = now - 60_000, {"record_score": 10}
    series = AffectedSeries(
        entity=machine, metric=metric, kind="anomaly", since=start, reported=now, change="", **worst
    )
    return Incident(
        id="test",
        opened=now,
        site="test",
        status="open",
        severity=severity,
        severity_score=10,
        record_score=10,
        start=start,
        updated=now,
        message="a test message; nothing is wrong",
        machine_count=1 if machine else 0,
        series_count=1 if machine else 0,
        open_series=1 if machine else 0,
        machines=[AffectedMachine(entity=machine, since=start, series=1, record_score=10)] if machine else [],
        series=[series] if machine else [],
        candidates=[Candidate(entity=machine, metric=metric, since=start, share=1.0, reason="this is a test")],
    )
