"""How many messages a channel would have got of an incident: the rules of `pipelines.notify`, without sending.

Quiet hours, the most messages within a time, escalations and reminders are left out: they depend on when a process
sends.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from pipelines.contracts.records import Incident
from pipelines.contracts.settings.notify import NotifySettings
from pipelines.contracts.settings.routes import Route
from pipelines.notify.news import LastReport, NewsState, news
from pipelines.notify.routing import Routing, Taken

STATES: Mapping[NewsState, str] = {
    "opened": "opened", "updated": "more severe", "reopened": "reopened", "resolved": "over",
}  # fmt: skip
"""What a message says of an incident, in words, in the order in which it comes."""


_TO_ALL = Routing([Route(name="all", channels=("all",))])


@dataclass(frozen=True)
class Listener:
    """Someone who would have been told.

    Attributes:
        name: Name of the channel; empty: any channel that is told of all incidents.
        routing: The routes.
    """

    name: str = ""
    routing: Routing = _TO_ALL


def listeners(settings: NotifySettings) -> tuple[Listener, ...]:
    """The channels of the settings; without any, one that would be told of all incidents."""
    routing = Routing.of(settings)
    return tuple(Listener(name, routing) for name in settings.channels) or (Listener(),)


def messages(revisions: Iterable[Incident], listener: Listener) -> Counter[NewsState]:
    """The messages on one incident, by what they say.

    Args:
        revisions: The revisions of the incident, the lowest first.
        listener: Who would have been told.
    """
    before: LastReport | None = None
    taken: Taken | None = None
    counts: Counter[NewsState] = Counter()
    for state in _states(revisions):
        taken = listener.routing.taken(state, taken)
        if message := news(state, before, listener.routing.duty(listener.name or "all", state, taken, 0)):
            counts[message.state] += 1
            before = message.as_report()
    return counts


def _states(revisions: Iterable[Incident]) -> Iterator[Incident]:
    """The states of an incident, one after the other.

    A replay reads much of the log in one micro-batch and writes one revision for it, where a live pipeline writes
    several. What it leaves out is put in between: an incident that is over was open; one that was reopened was over.
    """
    reopenings = 0
    for revision in revisions:
        for number in range(reopenings, revision.reopenings):
            yield revision.model_copy(update={"status": "open", "reopenings": number})
            yield revision.model_copy(update={"status": "resolved", "reopenings": number})
        if revision.status == "resolved":
            yield revision.model_copy(update={"status": "open"})
        reopenings = revision.reopenings
        yield revision
