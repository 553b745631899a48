"""Whom the incidents of the past would have paged by some settings: what `newnormal notify run` does, without a server.

Routes, news and plans are those of the process that tells. It is taken to run all the time, to read each revision at
the event time that stands in it, and to reach every receiver at once.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import NamedTuple

from engine.spec.duration import duration_ms
from pipelines.contracts.records import Incident
from pipelines.contracts.settings.notify import NotifySettings
from pipelines.contracts.week_times import is_within
from pipelines.notify.channels.senders import is_limited
from pipelines.notify.news import LastReport, News
from pipelines.notify.planning import all_due, plan
from pipelines.notify.routing import Routing, Taken

_MINUTE = 60_000
_WEEK = 7 * 24 * 60


class Page(NamedTuple):
    """A message that a channel would have got.

    Attributes:
        at: When, epoch milliseconds.
        channel: Name of the channel.
        news: What it tells: one, or several in a summary.
    """

    at: int
    channel: str
    news: tuple[News, ...]


@dataclass
class _Channel:
    name: str
    limited: bool
    reports: dict[str, LastReport] = field(default_factory=dict)
    sent: list[int] = field(default_factory=list)
    held: frozenset[str] = frozenset()


def pages(revisions: Iterable[tuple[int, Incident]], settings: NotifySettings, until: int) -> list[Page]:
    """The messages on incidents, in their order.

    Args:
        revisions: The revisions of all incidents, each with the instant at which it is read, epoch milliseconds.
        settings: The settings of notifications.
        until: No message is sent at or after this instant, epoch milliseconds.
    """
    return list(_Clock(settings).run(revisions, until))


class _Clock:
    """Goes from one instant to the next at which somebody may have to hear something.

    Only incidents of which there is a revision, or for which the clock says more, are looked at, and those that are
    held back: of all others nothing is new.
    """

    def __init__(self, settings: NotifySettings) -> None:
        self._settings, self._routing = settings, Routing.of(settings)
        self._channels = [_Channel(name, is_limited(each)) for name, each in settings.channels.items()]
        self._known: dict[str, tuple[Incident, Taken]] = {}
        self._alarms: list[tuple[int, str]] = []
        self._turns = 0

    def run(self, revisions: Iterable[tuple[int, Incident]], until: int) -> Iterator[Page]:
        waiting = deque(sorted(revisions, key=lambda each: (each[0], each[1].id, each[1].revision)))
        while waiting or self._alarms:
            now = min(each[0][0] for each in (waiting, self._alarms) if each)
            if now >= until:
                return
            touched: set[str] = set()
            while waiting and waiting[0][0] <= now:
                _, incident = waiting.popleft()
                _, before = self._known.get(incident.id, (None, None))
                self._known[incident.id] = incident, self._routing.taken(incident, before)
                touched.add(incident.id)
            while self._alarms and self._alarms[0][0] <= now:
                touched.add(heappop(self._alarms)[1])
            touched &= self._known.keys()
            for channel in self._channels:
                yield from self._tell(channel, touched, now)
            for name in touched:
                if (following := self._routing.next_duty(*self._known[name], now)) is not None:
                    heappush(self._alarms, (following, name))

    def _tell(self, channel: _Channel, touched: set[str], now: int) -> Iterator[Page]:
        some = [self._known[name] for name in sorted(touched | channel.held)]
        due = all_due(channel.name, some, self._routing, now, channel.reports, {})
        todo = plan(due, self._settings, now, channel.sent, channel.held, channel.limited)
        for message in (*((each,) for each in todo.single), *([todo.together] if todo.together else [])):
            channel.reports |= {each.incident.id: each.as_report() for each in message}
            channel.sent = [*channel.sent, now][-self._settings.rate :]
            yield Page(now, channel.name, message)
        channel.held = todo.held
        if todo.held:
            heappush(self._alarms, (self._again(channel, now), ""))

    def _again(self, channel: _Channel, now: int) -> int:
        """When what is held back may be told: the rate allows more, or a quiet time begins or ends."""
        per = duration_ms(self._settings.per)
        instants = [at + per for at in channel.sent if at + per > now]
        return min([*instants, self._quiet_turns(now)])

    def _quiet_turns(self, now: int) -> int:
        """When a quiet time begins or ends next; a week later if none does, epoch milliseconds."""
        if self._turns <= now:
            quiet, zone = self._settings.quiet, self._settings.timezone
            minutes = (now // _MINUTE * _MINUTE + n * _MINUTE for n in range(1, _WEEK + 2)) if quiet else ()
            present = is_within(quiet, zone, now)
            turns = (at for at in minutes if is_within(quiet, zone, at) != present)
            self._turns = next(turns, now + _WEEK * _MINUTE)
        return self._turns
