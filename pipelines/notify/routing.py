"""Which channels are told of an incident: what the routes take, when they escalate, and when they remind.

All follows from the times that stand in the incident, so that it is the same after a restart. Knows no server.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from hashlib import sha256

from engine.spec.duration import duration_ms
from pipelines.contracts.globs import compiled
from pipelines.contracts.records import Incident
from pipelines.contracts.records.incident import STANDING
from pipelines.contracts.records.severity import SEVERITIES, Severity
from pipelines.contracts.settings.notify import NotifySettings
from pipelines.contracts.settings.routes import Route, Selection
from pipelines.contracts.week_times import is_within

_LABELS = re.compile(r"\{(.*)\}$", re.DOTALL)


@dataclass(frozen=True)
class Taken:
    """What the routes made of an incident so far.

    Attributes:
        at: When it opened, became more severe than before, or came back, whichever was last, epoch milliseconds.
        severity: Its highest severity since it opened or came back.
        reopenings: How often it came back.
        since: The routes that take it, by name, and from when on.
    """

    at: int
    severity: Severity
    reopenings: int
    since: Mapping[str, int] = field(default_factory=dict)

    def stored(self) -> dict[str, object]:
        """As plain data; the argument of the class that made it."""
        return asdict(self)

    def only(self, routes: Collection[str]) -> Taken:
        """The same without all other routes."""
        return replace(self, since={name: at for name, at in self.since.items() if name in routes})


@dataclass(frozen=True)
class Duty:
    """What a channel has to hear of an incident.

    Attributes:
        told: Whether it is told of it at all.
        reminder: The last time at which it was to be reminded, epoch milliseconds; 0: none.
    """

    told: bool = False
    reminder: int = 0


class Routing:
    """The routes, in their order.

    Args:
        routes: The routes, each with a name of its own.
        first: Whether only the first route that matches takes an incident.
        timezone: IANA name of the time zone of routes that name none.
    """

    def __init__(self, routes: Iterable[Route], first: bool = False, timezone: str = "UTC") -> None:
        self._routes, self._first, self._zone = {route.name: route for route in routes}, first, timezone

    @classmethod
    def of(cls, settings: NotifySettings) -> Routing:
        """The routes of settings; without any, one for each channel, of which all count."""
        first = bool(settings.routes) and settings.matching == "first"
        return cls(settings.all_routes, first, settings.timezone)

    @property
    def digests(self) -> dict[str, list[str]]:
        """For each route a text that changes when it does, and the channels that it names."""
        common = f"{self._first} {self._zone} {list(self._routes)}" if self._first else self._zone
        texts = {name: f"{common} {route.model_dump_json()}" for name, route in self._routes.items()}
        short = {name: sha256(text.encode()).hexdigest()[:16] for name, text in texts.items()}
        return {name: [short[name], *sorted(route.named())] for name, route in self._routes.items()}

    def severity(self, name: str) -> Severity | None:
        """The severity from which on a route takes incidents; ``None``: there is no such route."""
        return self._routes[name].severity if name in self._routes else None

    def taken(self, incident: Incident, before: Taken | None = None) -> Taken:
        """What the routes make of the next revision of an incident.

        A route that has taken an incident keeps it. One that is over is taken by no other route.

        Args:
            incident: The revision.
            before: What they made of those before; ``None``: it is the first.
        """
        if before is None:
            now = Taken(incident.opened, incident.severity, incident.reopenings)
            return self._more(incident, now, incident.opened)
        if incident.status not in STANDING:
            return before
        if incident.reopenings > before.reopenings:
            again = dict.fromkeys(before.since, incident.updated)
            now = Taken(incident.updated, incident.severity, incident.reopenings, again)
        elif _rank(incident.severity) > _rank(before.severity):
            now = replace(before, at=incident.updated, severity=incident.severity)
        else:
            now = before
        return self._more(incident, now, incident.updated)

    def anew(self, incident: Incident, before: Taken) -> Taken:
        """What routes that have changed make of an incident that lasts."""
        return self._more(incident, before, before.at)

    def duty(self, channel: str, incident: Incident, taken: Taken, now: int) -> Duty:
        """What a channel has to hear of an incident.

        Args:
            channel: Name of the channel.
            incident: The incident.
            taken: What the routes made of it.
            now: The present, epoch milliseconds.
        """
        waits = _waits(incident)
        told, reminders = False, [0]
        for name, since in taken.since.items():
            route = self._routes.get(name)
            begins = [] if route is None else [since] if channel in route.channels else []
            if route and not begins and waits:
                steps = [since + duration_ms(step.after) for step in route.escalate if channel in step.channels]
                begins = [at for at in steps if at <= now]
            if route and begins:
                told = True
                if route.remind and waits:
                    every, began = duration_ms(route.remind), min(begins)
                    reminders += [began + (now - began) // every * every] if now - began >= every else []
        return Duty(told, max(reminders))

    def next_duty(self, incident: Incident, taken: Taken, now: int) -> int | None:
        """The next instant at which the clock alone gives a channel more to hear; ``None``: there is none.

        Args:
            incident: The incident.
            taken: What the routes made of it.
            now: The present, epoch milliseconds.
        """
        if not _waits(incident):
            return None
        instants = []
        for name, since in taken.since.items():
            if route := self._routes.get(name):
                steps = [since + duration_ms(step.after) for step in route.escalate]
                instants += steps
                every = duration_ms(route.remind) if route.remind else 0
                begun = [at for at in (since, *steps) if every and at <= now]
                instants += [at + ((now - at) // every + 1) * every for at in begun]
        return min((at for at in instants if at > now), default=None)

    def reasons(self, incident: Incident, at: int) -> dict[str, str]:
        """For each route why it does not take an incident; empty if it does.

        Args:
            incident: The incident.
            at: The instant that counts for the times of routes, epoch milliseconds.
        """
        found: dict[str, str] = {}
        for name, route in self._routes.items():
            earlier = next((one for one, why in found.items() if not why), None) if self._first else None
            found[name] = f"{earlier} takes it before" if earlier else self._misses(route, incident, at)
        return found

    def _more(self, incident: Incident, now: Taken, at: int) -> Taken:
        """Adds the routes that take an incident as it is now, from an instant on."""
        new = {name: at for name, why in self.reasons(incident, now.at).items() if not why}
        return replace(now, since={**new, **now.since})

    def _misses(self, route: Route, incident: Incident, at: int) -> str:
        if _rank(incident.severity) < _rank(route.severity):
            return "severity"
        if route.times and not is_within(route.times, route.timezone or self._zone, at):
            return "times"
        return misses(route, incident)


def _waits(incident: Incident) -> bool:
    """Whether it lasts and nobody has acknowledged it."""
    return incident.status in STANDING and incident.status != "acknowledged"


def misses(selection: Selection, incident: Incident) -> str:
    """Which of ``machine``, ``metric`` and ``tag`` no series of an incident matches; empty: one matches all.

    Beside its first 50 series an incident names up to 100 machines, which count where only machines are selected, and
    50 metrics, which count where no machines are. What is of no machine, as the silence of an input, is selected by a
    selection of all only.
    """
    wanted = [("machine", selection.machine), ("metric", selection.metric), ("tag", selection.tag)]
    left = list(_series(selection, incident))
    for name, globs in wanted:
        if globs:
            matches = compiled(globs).match
            left = [it for it in left if any(map(matches, _texts(name, *it)))]
            if not left:
                return name
    return ""


def tags(metric: str) -> tuple[str, ...]:
    """The labels in the name of a metric.

    >>> tags("net.bytes_sent{interface=eth0,zone=b}")
    ('interface=eth0', 'zone=b')
    """
    found = _LABELS.search(metric)
    return tuple(found[1].split(",")) if found else ()


def _series(selection: Selection, incident: Incident) -> Iterator[tuple[str, str]]:
    yield from ((each.entity, each.metric) for each in incident.series)
    if not selection.metric and not selection.tag:
        yield from ((each.entity, "") for each in incident.machines)
    if not selection.machine:
        yield from (("", each.metric) for each in incident.metrics)


def _texts(name: str, machine: str, metric: str) -> Sequence[str]:
    return tags(metric) if name == "tag" else (machine,) if name == "machine" else (metric,)


def _rank(severity: Severity) -> int:
    return SEVERITIES.index(severity)
