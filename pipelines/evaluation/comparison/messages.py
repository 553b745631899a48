"""How many messages a channel would have got of an incident: the rules of `pipelines.notify`, without sending.

Quiet hours and the most messages within a time are left out: they depend on when a process sends.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from pipelines.contracts.records import Incident
from pipelines.contracts.records.severity import Severity
from pipelines.contracts.settings.notify import NotifySettings
from pipelines.notify.news import LastReport, NewsState, news

STATES: Mapping[NewsState, str] = {
    "opened": "opened", "updated": "more severe", "reopened": "reopened", "resolved": "over",
}  # fmt: skip
"""What a message says of an incident, in words, in the order in which it comes."""


@dataclass(frozen=True)
class Listener:
    """Someone who would have been told.

    Attributes:
        name: Name of the channel; empty: any channel that is told of all incidents.
        least: The severity from which on it is told of incidents.
    """

    name: str = ""
    least: Severity = "warning"


def listeners(settings: NotifySettings) -> tuple[Listener, ...]:
    """The channels of the settings; without any, one that would be told of all incidents."""
    channels = settings.channels.items()
    return tuple(Listener(name, channel.severity) for name, channel in channels) or (Listener(),)


def messages(revisions: Iterable[Incident], least: Severity) -> Counter[NewsState]:
    """The messages on one incident, by what they say.

    Args:
        revisions: The revisions of the incident, the lowest first.
        least: The severity from which on the channel is told of incidents.
    """
    before: LastReport | None = None
    counts: Counter[NewsState] = Counter()
    for state in _states(revisions):
        if message := news(state, before, least):
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
