"""Where a message leads: to the incident, a dashboard and a runbook, and to where an operator acts."""

from __future__ import annotations

from dataclasses import dataclass
from string import Template
from urllib.parse import quote

from pipelines.contracts.records import Incident
from pipelines.contracts.records.incident import STANDING
from pipelines.contracts.settings.notify import NotifySettings
from pipelines.notify.news import News
from pipelines.notify.routing import misses

_LONGEST = 3_000
"""Characters of an address: Slack takes no longer one of a button, and a card of Teams holds several."""

_AROUND_MS = 3_600_000
"""A dashboard shows so much before and after an incident, milliseconds."""


@dataclass(frozen=True)
class Link:
    """An address in a message.

    Attributes:
        kind: ``link`` (the incident in the console), ``dashboard``, ``runbook``, ``acknowledge`` or ``maintenance``.
        title: What a button says.
        url: The address.
    """

    kind: str
    title: str
    url: str


def links(news: News, settings: NotifySettings) -> tuple[Link, ...]:
    """The links of a message on one incident: those that the settings give, unless a name makes an address too long.

    Those by which an operator acts open the console, where one more click acts: a receiver that looks at what a link
    leads to, as many do, changes nothing.
    """
    incident, found = news.incident, list[Link]()
    machine, metric = _series(incident)
    values = {"machine": machine, "metric": metric}
    until = incident.updated if incident.end is None else incident.end
    values |= {"from": str(incident.start - _AROUND_MS), "to": str(until + _AROUND_MS)}
    quoted = {name: quote(value, safe="") for name, value in values.items()}
    runbook = next((each.url for each in settings.runbooks if not misses(each, incident)), None)
    page = link(incident, settings)
    if page:
        found.append(Link("link", "Incident", page))
    if settings.dashboard:
        found.append(Link("dashboard", "Dashboard", Template(settings.dashboard).substitute(quoted)))
    if runbook:
        found.append(Link("runbook", "Runbook", Template(runbook).substitute(quoted)))
    if page and incident.status in STANDING and news.state != "resolved":
        if incident.status != "acknowledged":
            found.append(Link("acknowledge", "Acknowledge", f"{page}/acknowledge"))
        if incident.machines:
            found.append(Link("maintenance", "Maintenance", f"{page}/maintenance"))
    return tuple(each for each in found if len(each.url) <= _LONGEST)


def link(incident: Incident, settings: NotifySettings) -> str:
    """The page of an incident in the console; empty if the settings do not say where the console is."""
    return f"{settings.console.rstrip('/')}/#incident/{quote(incident.id, safe='')}" if settings.console else ""


def _series(incident: Incident) -> tuple[str, str]:
    """The machine and metric that an incident is about most: the likeliest cause, else the first series."""
    found = [(each.entity, each.metric) for each in incident.candidates]
    found += [(each.entity, each.metric) for each in incident.series]
    found += [(each.entity, "") for each in incident.machines]
    return found[0] if found else ("", "")
