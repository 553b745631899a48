"""Messages: what is said of one incident, or of several in a summary, as a title and a text made from templates."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from string import Template

from engine.printing import visible
from engine.spec.duration import iso
from pipelines.contracts.settings.channels import Channel
from pipelines.contracts.settings.notify import NotifySettings
from pipelines.notify.links import Link, links
from pipelines.notify.news import News

TITLE = "[$severity] $state: $message"
TEXT = """$message

severity: $severity ($score)
time: $start to $end
probably began at: $cause ($reason)
machines ($machine_count): $machines
novel series: $series_count
$acknowledged_by
$note
$link
dashboard: $dashboard
runbook: $runbook"""
_SHOWN = 10
"""How many machines, or incidents of a summary, are named."""


@dataclass(frozen=True)
class Message:
    """What a channel is sent.

    Attributes:
        id: The deduplication id.
        state: The state of the news, or ``summary`` or ``test``.
        title: One line.
        text: Several lines.
        news: The news that it tells.
        links: Where to read on, and where to act, for receivers with buttons.
    """

    id: str
    state: str
    title: str
    text: str
    news: tuple[News, ...]
    links: tuple[Link, ...] = ()


def single(
    news: News, channel: Channel, settings: NotifySettings, version: str, escape: Callable[[str], str] = str
) -> Message:
    """The message on one incident. A line of the template is left out if all that it names is empty.

    Args:
        news: What is new.
        channel: The channel, which may have templates of its own.
        settings: The settings of notifications.
        version: The version of the chain whose incident it is.
        escape: Escapes what the receiver would take for markup.
    """
    given, found = _fields(news, settings, version), links(news, settings)
    given |= {"link": "", "dashboard": "", "runbook": ""} | {each.kind: each.url for each in found}
    kept = {"link", "dashboard", "runbook"}
    fields = {name: value if name in kept else escape(value) for name, value in given.items()}
    title = Template(channel.title or TITLE).substitute(fields)
    told = [line for line in map(Template, (channel.text or TEXT).splitlines()) if _tells(line, fields)]
    lines = [line.substitute(fields).rstrip() for line in told]
    return Message(news.id, news.state, " ".join(title.split()), "\n".join(lines).strip(), (news,), found)


def summary(news: Sequence[News], settings: NotifySettings, escape: Callable[[str], str] = str) -> Message:
    """One message on several incidents that were held back.

    Args:
        news: The news, in the order in which they are shown.
        settings: The settings of notifications.
        escape: Escapes what the receiver would take for markup.
    """
    lines = [
        escape(f"[{one.incident.severity}] {one.state}: {visible(one.incident.message)} ({one.incident.id})")
        for one in news[:_SHOWN]
    ]
    more = [f"and {len(news) - _SHOWN} more"] if len(news) > _SHOWN else []
    overview = [settings.console] if settings.console else ["`newnormal incidents list` shows them"]
    digest = hashlib.sha256("\n".join(sorted(one.id for one in news)).encode()).hexdigest()[:16]
    title = f"{len(news)} incidents were held back"
    return Message(f"{digest}:summary", "summary", title, "\n".join([*lines, *more, *overview]), tuple(news))


def _tells(line: Template, fields: Mapping[str, str]) -> bool:
    """Whether a line of a template names something that is not empty, or nothing.

    >>> _tells(Template("by $name ($id)"), {"name": "", "id": ""}), _tells(Template("by"), {})
    (False, True)
    """
    names = line.get_identifiers()
    return not names or any(fields[name] for name in names)


def _fields(news: News, settings: NotifySettings, version: str) -> dict[str, str]:
    """What templates may name; values from outside are shown in one line without control characters."""
    incident = news.incident
    names = [machine.entity for machine in incident.machines]
    more = incident.machine_count - _SHOWN
    cause = incident.candidates[0] if incident.candidates else None
    fields = {
        "id": incident.id,
        "state": news.state,
        "severity": incident.severity,
        "score": str(incident.severity_score),
        "incident_state": incident.status,
        "message": incident.message,
        "site": incident.site,
        "version": version,
        "start": iso(incident.start),
        "end": iso(incident.end) if incident.end is not None else "now",
        "machines": ", ".join(names[:_SHOWN]) + (f" and {more} more" if more > 0 else ""),
        "machine_count": str(incident.machine_count or ""),  # the silence of an input is of no machine and no series
        "series_count": str(incident.series_count or ""),
        "cause": cause.entity if cause else "",
        "reason": cause.reason if cause else "",
        "acknowledged_by": f"acknowledged by {incident.acknowledged_by}" if incident.acknowledged_by else "",
        "note": incident.note or "",
    }
    return {name: visible(value) for name, value in fields.items()}
