"""Which messages a channel gets now: what is new for it, quiet hours, the most within a time, and summaries.

Pure functions: `pipelines.notify.teller` tells by them, `pipelines.notify.paging` says whom the past would have paged.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from engine.spec.duration import duration_ms
from pipelines.contracts.records import Incident
from pipelines.contracts.records.severity import SEVERITIES
from pipelines.contracts.settings.notify import NotifySettings
from pipelines.contracts.week_times import is_within
from pipelines.notify.news import LastReport, News, news
from pipelines.notify.routing import Routing, Taken


@dataclass(frozen=True)
class Plan:
    """What is sent now.

    Attributes:
        single: News that each are a message, in this order.
        together: News that become one summary after them.
        held: Ids of the incidents that are held back.
    """

    single: tuple[News, ...] = ()
    together: tuple[News, ...] = ()
    held: frozenset[str] = frozenset()


def all_due(
    channel: str,
    incidents: Iterable[tuple[Incident, Taken]],
    routing: Routing,
    now: int,
    reports: Mapping[str, LastReport],
    tried: Mapping[str, LastReport],
) -> list[News]:
    """What is new about incidents for a channel.

    Args:
        channel: Name of the channel.
        incidents: The incidents, each with what the routes made of it.
        routing: The routes.
        now: The present, epoch milliseconds.
        reports: What the channel was told last, by id of the incident.
        tried: What it may have been told since, see `pipelines.notify.news.news`.
    """
    due = []
    for incident, taken in incidents:
        name, duty = incident.id, routing.duty(channel, incident, taken, now)
        if new := news(incident, reports.get(name), duty, tried.get(name)):
            due.append(new)
    return due


def in_order(due: Iterable[News]) -> list[News]:
    """News in the order in which they are told: the most severe first, then what opened first."""
    return sorted(due, key=lambda one: (-one.rank, one.incident.opened, one.incident.id))


def plan(
    due: Sequence[News],
    settings: NotifySettings,
    now: int,
    sent: Sequence[int],
    held: Collection[str],
    limited: bool = True,
) -> Plan:
    """Decides what of the news is sent now.

    News that were held back become one summary, unless they are alone. The most severe go first, and alone.

    Args:
        due: What the channel has to be told.
        settings: The settings of notifications.
        now: The present, epoch milliseconds.
        sent: When the channel got its last messages, epoch milliseconds.
        held: Ids of the incidents that were held back before.
        limited: False for a receiver with limits of its own: it is sent all at once, each as a message.
    """
    if not limited:
        return Plan(tuple(in_order(due)))
    through = SEVERITIES.index(settings.breakthrough)
    quiet, order = is_within(settings.quiet, settings.timezone, now), in_order(due)
    spoken = [one for one in order if one.rank >= through] if quiet else order
    free = settings.rate - sum(at > now - duration_ms(settings.per) for at in sent)
    waiting = {one.incident.id for one in spoken} & set(held)
    single = [one for one in spoken if one.rank >= through or len(waiting) < 2 or one.incident.id not in waiting]
    together = [one for one in spoken if one.rank < through and len(waiting) > 1 and one.incident.id in waiting]
    if len(single) + bool(together) > free:
        kept = max(0, free - 1)
        single, together = single[:kept], [*single[kept:], *together]
        if free <= 0:
            together = []
        elif len(together) == 1:
            single, together = [*single, *together], []
    chosen = {one.incident.id for one in (*single, *together)}
    return Plan(tuple(single), tuple(together), frozenset(one.incident.id for one in due) - chosen)
