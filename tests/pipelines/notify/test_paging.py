"""Whom the past would have paged: against docs/notifications.md in plain Python, and against a clock that ticks."""

from __future__ import annotations

import random
import time
from typing import Any

import pytest

from pipelines.contracts.records import Incident
from pipelines.contracts.settings import load
from pipelines.contracts.settings.notify import NotifySettings
from pipelines.notify.news import LastReport, news
from pipelines.notify.paging import Page, pages
from pipelines.notify.planning import plan
from pipelines.notify.routing import Routing, Taken
from tests.pipelines.notify.receivers import T0, incident
from tests.pipelines.notify.routing_reference import DAY, HOUR, MINUTE, Channel, begun, changed, whom
from tests.pipelines.notify.test_routed_process import CHANNELS, ROUTES

FOREVER = T0 + 365 * DAY


def settings(routes: list[dict[str, Any]], **more: Any) -> NotifySettings:
    kinds = {name: {"kind": "webhook", "url": "http://127.0.0.1:9"} for name in CHANNELS}
    kinds |= {"alert": {"kind": "alertmanager", "url": "http://127.0.0.1:9"}}
    return load(**{"notify.channels": kinds, "notify.routes": routes, **more}).notify


def histories(seed: int, count: int, grid: int = 1) -> dict[str, list[Incident]]:
    """Random incidents of a week, at instants of a grid, milliseconds."""
    dice, found = random.Random(seed), {}
    for n in range(count):
        own = [begun(f"i{n:03}", dice, T0)]
        for _ in range(dice.randrange(6)):
            own.append(changed(own[-1], dice, T0))
        down = {name: lambda it, name=name: getattr(it, name) // grid * grid for name in ("opened", "updated")}
        found[f"i{n:03}"] = [it.model_copy(update={name: of(it) for name, of in down.items()}) for it in own]
    return found


def read(incidents: dict[str, list[Incident]]) -> list[tuple[int, Incident]]:
    return [(it.updated, it) for own in incidents.values() for it in own]


def said(found: list[Page]) -> list[tuple[int, str, str, str]]:
    return sorted((page.at, page.channel, each.incident.id, each.state) for page in found for each in page.news)


@pytest.mark.parametrize("matching", ["first", "all"])
@pytest.mark.parametrize("seed", range(4))
def test_each_channel_hears_what_the_page_says_at_the_time_that_it_says(matching: str, seed: int) -> None:
    """The reference asks at each revision, and fifteen minutes after each: when the routes escalate."""
    incidents = histories(seed, 25)
    times = {it.updated for own in incidents.values() for it in own}
    times |= {at + 15 * MINUTE for at in times | {own[0].opened for own in incidents.values()}}
    channels, expected = {name: Channel() for name in CHANNELS}, []
    for now in sorted(times):
        known = {name: some for name, own in incidents.items() if (some := [it for it in own if it.updated <= now])}
        told = {name: whom(ROUTES, matching, own, now) for name, own in known.items()}
        for name, channel in channels.items():
            due = channel.due(known, {it: name in told[it] for it in known})
            expected += [(now, name, it, state) for it, state, *_ in due]
            channels[name] = channel.after(due)
    found = pages(read(incidents), settings(ROUTES, **{"notify.matching": matching, "notify.rate": 10_000}), FOREVER)
    assert said(found) == sorted(expected) and len(expected) > 40
    assert {state for *_, state in expected} >= {"opened", "updated", "resolved", "reopened"}


LIMITED = [
    {
        "machine": "db-*",
        "channels": ["pager", "alert"],
        "escalate": [{"after": "40m", "channels": ["boss"]}],
        "remind": "2h",
    },
    {"channels": ["chat", "alert"], "remind": "45m", "escalate": [{"after": "3h", "channels": ["disks"]}]},
]


@pytest.mark.parametrize("quiet", ["", "22:00-07:00, mon 12:00-13:30"])
def test_nothing_is_missed_between_the_instants_that_are_looked_at(quiet: str) -> None:
    """A clock that asks each channel in every minute of two days of all incidents gives the same messages."""
    given = settings(LIMITED, **{"notify.quiet": quiet, "notify.rate": 2, "notify.per": "30m"})
    incidents, end = histories(len(quiet), 40, MINUTE), T0 + 18 * HOUR
    incidents = {name: own for name, own in incidents.items() if own[0].opened > T0 - DAY}
    waiting = sorted(read(incidents), key=lambda each: (each[0], each[1].id, each[1].revision))
    routing = Routing.of(given)
    known: dict[str, tuple[Incident, Taken]] = {}
    reports: dict[str, dict[str, LastReport]] = {name: {} for name in given.channels}
    sent: dict[str, list[int]] = {name: [] for name in given.channels}
    held: dict[str, Any] = dict.fromkeys(given.channels, frozenset())
    expected = []
    for now in range(T0 - DAY, end, MINUTE):
        while waiting and waiting[0][0] <= now:
            _, it = waiting.pop(0)
            known[it.id] = it, routing.taken(it, known[it.id][1] if it.id in known else None)
        for name in given.channels:
            duties = ((it, routing.duty(name, it, taken, now)) for it, taken in known.values())
            due = [new for it, duty in duties if (new := news(it, reports[name].get(it.id), duty))]
            if not due:
                continue
            todo = plan(due, given, now, sent[name], held[name], name != "alert")
            for message in [(each,) for each in todo.single] + ([todo.together] if todo.together else []):
                reports[name] |= {each.incident.id: each.as_report() for each in message}
                sent[name] = [*sent[name], now][-2:]
                expected.append((now, name, [(each.incident.id, each.state) for each in message]))
            held[name] = todo.held
    found = [(p.at, p.channel, [(n.incident.id, n.state) for n in p.news]) for p in pages(read(incidents), given, end)]
    assert sorted(found) == sorted(expected) and len(expected) > 50
    assert any(len(several) > 1 for _, _, several in expected), "some are held back, and follow in a summary"


def test_what_comes_and_goes_between_two_looks_is_told_at_each() -> None:
    opened, over = incident(), incident(status="resolved", revision=1, updated=T0 + HOUR)
    given = settings([{"channels": ["chat"], "escalate": [{"after": "15m", "channels": ["boss"]}], "remind": "20m"}])
    found = pages([(T0, opened), (T0 + HOUR, over)], given, T0 + 2 * HOUR)
    assert [((page.at - T0) // MINUTE, page.channel, page.news[0].state) for page in found] == [
        (0, "chat", "opened"), (15, "boss", "opened"), (20, "chat", "ongoing"), (35, "boss", "ongoing"),
        (40, "chat", "ongoing"), (55, "boss", "ongoing"), (60, "boss", "resolved"), (60, "chat", "resolved"),
    ]  # fmt: skip
    assert pages([(T0, opened)], given, T0) == []


def test_some_thousand_incidents_take_seconds() -> None:
    incidents = histories(5, 2_000)
    began = time.process_time()
    assert len(pages(read(incidents), settings(ROUTES), FOREVER)) > 2_000
    assert time.process_time() - began < 20
