"""What docs/notifications.md says of routes and messages, in plain Python, and random incidents to try it on.

Knows nothing of `pipelines.notify`: it reads the settings as they stand in a file.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from datetime import datetime, timedelta
from fnmatch import fnmatchcase
from typing import Any
from zoneinfo import ZoneInfo

from pipelines.contracts.records import Incident
from pipelines.contracts.records.incident import AffectedMachine, AffectedMetric, AffectedSeries
from tests.pipelines.notify.receivers import incident

MINUTE, HOUR, DAY = 60_000, 3_600_000, 86_400_000
RANKS = {"warning": 0, "minor": 1, "major": 2, "critical": 3}
UNITS = {"s": 1_000, "m": MINUTE, "h": HOUR, "d": DAY}
DAYS = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"]
MACHINES = ["db-1", "db-2", "web-1", "web-2", "cache"]
METRICS = ["cpu", "latency", "disk.used{path=/}", "disk.used{path=/var}", "net{if=eth0,zone=b}"]


def milliseconds(text: str) -> int:
    return int(text[:-1]) * UNITS[text[-1]]


def in_times(text: str, zone: str, instant: int) -> bool:
    """Goes through the days one by one: does a span that begins on this or the day before hold the instant?"""
    moment = datetime.fromtimestamp(instant / 1000, ZoneInfo(zone)).replace(tzinfo=None)
    for part in text.split(","):
        words = part.split()
        first, _, last = words[0].partition("-") if words[0][0].isalpha() else ("mon", "", "sun")
        count = (DAYS.index(last or first) - DAYS.index(first)) % 7 + 1
        days = [DAYS[(DAYS.index(first) + n) % 7] for n in range(count)]
        begin, _, end = words[-1].partition("-") if words[-1][0].isdigit() else ("00:00", "", "00:00")
        for back in (0, 1):
            day = (moment - timedelta(days=back)).replace(hour=0, minute=0, second=0, microsecond=0)
            start, stop = (day + timedelta(hours=int(t[:2]), minutes=int(t[3:])) for t in (begin, end))
            stop += timedelta(days=1) if stop <= start else timedelta()
            if DAYS[day.weekday()] in days and start <= moment < stop:
                return True
    return False


def takes(route: dict[str, Any], it: Incident, at: int) -> bool:
    """Whether a route takes an incident whose last news was at an instant. Here an incident names all its series."""
    if RANKS[it.severity] < RANKS[route.get("severity", "warning")]:
        return False
    if "times" in route and not in_times(route["times"], route.get("timezone", "UTC"), at):
        return False
    wanted = {name: [route[name]] if isinstance(route[name], str) else route[name] for name in route if name in FIELDS}
    if not wanted:
        return True
    return any(
        all(
            any(fnmatchcase(text, glob) for text in FIELDS[name](each) for glob in globs)
            for name, globs in wanted.items()
        )
        for each in it.series
    )


FIELDS: dict[str, Any] = {
    "machine": lambda series: [series.entity],
    "metric": lambda series: [series.metric],
    "tag": lambda series: series.metric.partition("{")[2].rstrip("}").split(",") if "{" in series.metric else [],
}


def whom(routes: Sequence[dict[str, Any]], matching: str, revisions: Sequence[Incident], now: int) -> set[str]:
    """The channels that are to be told of an incident after some revisions."""
    since: dict[int, int] = {}
    at = high = reopenings = 0
    for number, it in enumerate(revisions):
        over = it.status in ("resolved", "merged")
        if number and over:
            continue
        if not number:
            at, high, reopenings = it.opened, RANKS[it.severity], it.reopenings
        elif it.reopenings > reopenings:
            at, high, reopenings = it.updated, RANKS[it.severity], it.reopenings
            since = dict.fromkeys(since, it.updated)
        elif RANKS[it.severity] > high:
            at, high = it.updated, RANKS[it.severity]
        found = [n for n, route in enumerate(routes) if takes(route, it, at)]
        for n in found[:1] if matching == "first" else found:
            since.setdefault(n, it.updated if number else it.opened)
    last, told = revisions[-1], set[str]()
    for n, begun in since.items():
        told |= set(routes[n]["channels"])
        for step in routes[n].get("escalate", []):
            if last.status in ("open", "reopened") and begun + milliseconds(step["after"]) <= now:
                told |= set(step["channels"])
    return told


class Channel:
    """What one channel knows, and what it has to be told next, by the table of docs/notifications.md."""

    def __init__(self) -> None:
        self.told: dict[str, tuple[str, int, int]] = {}

    def due(self, incidents: dict[str, list[Incident]], mine: dict[str, bool]) -> list[tuple[str, str, int, int]]:
        """Incident, state, rank and reopenings of all that is to be told, in order.

        Args:
            incidents: The revisions of all incidents.
            mine: Whether the channel is to be told of each.
        """
        found = []
        for name, revisions in incidents.items():
            last, known = revisions[-1], self.told.get(name)
            rank, hears = RANKS[last.severity], known is not None and known[0] != "resolved"
            state = None
            if last.status in ("resolved", "merged"):
                missed = known is None and last.status == "resolved" and mine[name]
                state = "resolved" if hears or missed else None
            elif known is None or not hears:
                state = None if not mine[name] else "opened" if known is None else "reopened"
            elif last.reopenings > known[2]:
                state = "reopened"
            elif rank > known[1]:
                state = "updated"
            if state:
                order = -max(rank, known[1] if known else 0), last.opened, name
                found.append((order, (name, state, rank, last.reopenings)))
        return [each for _, each in sorted(found)]

    def after(self, messages: Sequence[tuple[str, str, int, int]]) -> Channel:
        """The channel when it was told some messages."""
        later = Channel()
        later.told = self.told | {name: (state, rank, reopenings) for name, state, rank, reopenings in messages}
        return later


def shown(it: Incident, dice: random.Random, more: int) -> Incident:
    """An incident with some more series than before."""
    pairs = {(each.entity, each.metric): each for each in it.series}
    for _ in range(more):
        pair = dice.choice(MACHINES), dice.choice(METRICS)
        facts: dict[str, Any] = {"kind": "anomaly", "since": it.start, "reported": it.opened, "change": ""}
        pairs[pair] = AffectedSeries(entity=pair[0], metric=pair[1], record_score=60, **facts)
    machines, metrics = sorted({a for a, _ in pairs}), sorted({b for _, b in pairs})
    return it.model_copy(update={
        "series": list(pairs.values()), "machine_count": len(machines), "series_count": len(pairs),
        "machines": [AffectedMachine(entity=a, since=it.start, series=1, record_score=60) for a in machines],
        "metrics": [AffectedMetric(metric=b, machines=1, record_score=60) for b in metrics],
    })  # fmt: skip


def begun(name: str, dice: random.Random, now: int) -> Incident:
    """A new incident: within the last week, or so young that nobody had the time to acknowledge it."""
    opened = now - (dice.randrange(2 * MINUTE) if dice.random() < 0.3 else dice.randrange(6 * HOUR, 7 * DAY))
    severity = dice.choice(list(RANKS))
    it = incident(name, "open", severity, opened=opened, start=opened, updated=opened, machines=[], candidates=[])
    return shown(it, dice, dice.choice([0, 1, 1, 2, 3]))


def changed(it: Incident, dice: random.Random, now: int) -> Incident:
    """The next revision of an incident. Only a young one is acknowledged: before it would have escalated."""
    updated = min(now, it.updated + dice.randrange(1, HOUR))
    more: dict[str, Any] = {"revision": it.revision + 1, "updated": updated}
    if it.status == "resolved":
        more |= {"status": "reopened", "reopenings": it.reopenings + 1, "end": None}
    elif dice.random() < 0.4:
        more |= {"status": "resolved", "end": updated}
    elif dice.random() < 0.4 and now - it.opened < 10 * MINUTE and not it.reopenings:
        more |= {"status": "acknowledged", "acknowledged_by": "ann"}
    else:
        more |= {"severity": dice.choice(list(RANKS))}
    return shown(it.model_copy(update=more), dice, dice.choice([0, 0, 1]))
