"""Whom an incident is told, by routes: against a reference that reads the settings; escalations and reminders."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.spec.errors import NewnormalError
from pipelines.contracts.records import Incident
from pipelines.contracts.settings import load
from pipelines.notify.memory import Memory
from pipelines.notify.news import LastReport, news
from pipelines.notify.routing import Routing, Taken
from pipelines.notify.trial import try_routes
from tests.pipelines.notify import routing_reference as reference
from tests.pipelines.notify.receivers import T0, incident

MINUTE, HOUR = 60_000, 3_600_000
CHANNELS = {name: {"kind": "webhook", "url": "http://127.0.0.1:9"} for name in ("pager", "chat", "boss")}

GLOBS = {
    "machine": ["db-*", "web-?", "cache", ["db-1", "cache"], "*"],
    "metric": ["cpu", "disk*", "*{path=/}", ["latency", "net*"]],
    "tag": ["path=/*", "zone=b", ["if=eth0", "path=/"]],
    "severity": ["warning", "minor", "major", "critical"],
    "times": ["mon-fri 08:00-18:00", "22:00-07:00", "sat-sun", "fri-mon 12:30-03:15, wed", "09:00-10:00,tue"],
    "timezone": ["Europe/Stockholm", "Asia/Kolkata", "UTC"],
}
ROUTES = st.lists(
    st.fixed_dictionaries(
        {"channels": st.lists(st.sampled_from(list(CHANNELS)), max_size=2, unique=True)},
        optional={name: st.sampled_from(values) for name, values in GLOBS.items()}
        | {"escalate": st.just([{"after": "15m", "channels": ["boss"]}])},
    ),
    min_size=1,
    max_size=5,
)


def routing(routes: list[dict[str, Any]], matching: str = "first", **more: Any) -> Routing:
    return Routing.of(
        load(**{"notify.channels": CHANNELS, "notify.routes": routes, "notify.matching": matching, **more}).notify
    )


@given(routes=ROUTES, matching=st.sampled_from(["first", "all"]), seed=st.integers(0, 2**32), steps=st.integers(0, 6))
def test_the_channels_are_those_that_the_routes_say_whatever_revisions_come_and_after_a_restart(
    routes: list[dict[str, Any]], matching: str, seed: int, steps: int
) -> None:
    dice, mine = random.Random(seed), routing(routes, matching)
    revisions = [reference.begun("aaa", dice, T0)]
    for _ in range(steps):
        revisions.append(reference.changed(revisions[-1], dice, T0))
    taken: Taken | None = None
    for number, it in enumerate(revisions, 1):
        taken = mine.taken(it, taken)
        taken = Taken(**taken.stored())  # type: ignore[arg-type]
        told = {name for name in CHANNELS if mine.duty(name, it, taken, T0).told}
        assert told == reference.whom(routes, matching, revisions[:number], T0)


def test_an_incident_escalates_if_nobody_acknowledges_it_in_time_and_not_after() -> None:
    mine = routing([{"channels": ["pager"], "escalate": [
        {"after": "15m", "channels": ["chat"]}, {"after": "1h", "channels": "boss"}]}])  # fmt: skip
    opened, acknowledged = incident(), incident(status="acknowledged", updated=T0 + MINUTE)
    taken = mine.taken(opened)

    def told(it: Incident, after: int) -> list[str]:
        return [name for name in CHANNELS if mine.duty(name, it, taken, T0 + after).told]

    assert told(opened, 0) == told(opened, 15 * MINUTE - 1) == ["pager"]
    assert told(opened, 15 * MINUTE) == ["pager", "chat"]
    assert told(opened, HOUR) == ["pager", "chat", "boss"]
    assert told(acknowledged, HOUR) == ["pager"]
    released = incident(status="open", updated=T0 + 2 * MINUTE)
    assert told(released, HOUR) == ["pager", "chat", "boss"], "an acknowledgement that is taken back is none"


def reminded(times: list[int], lasts: Incident, say: LastReport | None = None) -> list[tuple[int, str]]:
    """When what is told to a channel that is reminded every hour, asked at some times in minutes after the opening."""
    mine, found = routing([{"channels": ["pager"], "remind": "1h"}]), []
    taken = mine.taken(incident())
    for minutes in times:
        duty = mine.duty("pager", lasts, taken, T0 + minutes * MINUTE)
        if new := news(lasts, say, duty):
            say = LastReport.of(new.as_report().stored())
            found.append((minutes, new.id))
    return found


def test_what_lasts_is_told_again_every_hour_once_also_after_a_time_in_which_nothing_ran() -> None:
    asked = [0, 1, 59, 60, 61, 119, 120, 300, 301, 359, 360]
    ongoing = [(minutes, f"aaa:{number}:ongoing") for number, minutes in enumerate([60, 120, 300, 360], 2)]
    assert reminded(asked, incident()) == [(0, "aaa:1:opened"), *ongoing]
    assert reminded([90, 119, 120], incident()) == [(90, "aaa:1:opened"), (120, "aaa:2:ongoing")]
    opened = LastReport("opened", "critical", 0, 1)
    assert reminded([60, 120], incident(status="acknowledged"), opened) == [], "somebody looks after it"
    assert reminded([60, 120], incident(status="resolved"), opened) == [(60, "aaa:2:resolved")]


def stored(folder: Path, mine: Routing, *found: Incident, begin: bool = True) -> dict[str, list[str]]:
    """What channels are due after a start with routes that reads some incidents: from the end of the topic on."""
    memory = Memory(folder, list(CHANNELS), mine)
    memory.take("incidents", found, {0: len(found)}, 0)
    if begin:
        memory.begin("incidents")
    due: dict[str, list[str]] = {}
    for each in memory.incidents("incidents")[0]:
        for name in CHANNELS:
            if news(each.incident, None, mine.duty(name, each.incident, each.taken, T0)):
                due.setdefault(name, []).append(each.incident.id)
    memory.close()
    return {name: sorted(ids) for name, ids in due.items()}


def test_other_routes_take_what_lasts_and_tell_of_nothing_that_was_over_before(tmp_path: Path) -> None:
    chat, pager = routing([{"channels": ["chat"]}]), routing([{"channels": ["pager"]}])
    assert stored(tmp_path, chat, incident("old", "resolved")) == {}
    assert stored(tmp_path, chat, incident("lasts"), incident("brief", "resolved")) == {"chat": ["brief", "lasts"]}
    assert stored(tmp_path, pager, incident("between", "resolved")) == {"pager": ["lasts"]}
    assert stored(tmp_path, pager, incident("later", "resolved")) == {"pager": ["lasts", "later"]}
    both = routing([{"channels": ["pager", "boss"]}])
    assert stored(tmp_path, both) == {"pager": ["lasts"], "boss": ["lasts"]}


def test_every_revision_counts_also_those_that_were_read_while_nobody_could_be_told(tmp_path: Path) -> None:
    """It was critical in the day, and is minor when the process starts again at night: the pager of the day is told."""
    mine = routing([{"channels": ["pager"], "severity": "critical"}, {"channels": ["chat"]}])
    stored(tmp_path, mine)
    revisions = incident(severity="minor"), incident(revision=1), incident(severity="minor", revision=2)
    assert stored(tmp_path, mine, *revisions) == {"pager": ["aaa"], "chat": ["aaa"]}


def test_the_table_of_routes_says_which_takes_an_incident_and_why_others_do_not() -> None:
    given = load(**{
        "notify.channels": CHANNELS,
        "notify.routes": [
            {"name": "databases", "machine": "db-*", "severity": "major", "channels": ["pager"]},
            {"times": "mon-fri 08:00-18:00", "timezone": "Europe/Stockholm", "channels": ["chat"]},
            {"tag": "path=/", "channels": ["boss"]},
        ],
    }).notify  # fmt: skip
    night, day = 1_767_571_200_000, 1_767_600_000_000  # Monday, 01:00 and 09:00 in Stockholm
    asked = [("db-1", "cpu", "critical", day), ("db-1", "cpu", "minor", day), ("web", "disk{path=/}", "minor", night)]
    tables = [{it.route.name: it.why for it in try_routes(given, *each)} for each in asked]  # type: ignore[arg-type]
    assert tables == [
        {"databases": "", "route 2": "databases takes it before", "route 3": "databases takes it before"},
        {"databases": "severity", "route 2": "", "route 3": "route 2 takes it before"},
        {"databases": "severity", "route 2": "times", "route 3": ""},
    ]
    assert {it.route.name: it.why for it in try_routes(given, "", "", "critical", night)}["databases"] == "machine"


@pytest.mark.parametrize(
    ("more", "name", "accepted"),
    [
        ({"notify.routes": [{"channels": ["pagers"]}]}, "notify.routes: route 1 names pagers", "pager, chat, boss"),
        ({"notify.routes": [{"channels": [], "severity": "high"}]}, "notify.routes.0.severity = 'high'", "critical"),
        ({"notify.routes": [{"channels": [], "times": "8-18"}]}, "notify.routes.0.times = '8-18'", "08:00-18:00"),
        ({"notify.routes": [{"name": "a", "channels": []}] * 2}, "two are called a", "another name"),
        ({"notify.matching": "some"}, "notify.matching = 'some'", "first, all"),
    ],
)
def test_a_wrong_route_stops_the_start_and_is_named_with_what_is_accepted(
    more: dict[str, Any], name: str, accepted: str
) -> None:
    with pytest.raises(NewnormalError) as caught:
        load(**{"notify.channels": CHANNELS, **more})
    assert caught.value.code == "SETTING_INVALID"
    assert name in caught.value.what
    assert accepted in caught.value.accepted


def test_a_severity_of_a_channel_is_its_route_and_does_not_stand_beside_other_routes() -> None:
    channels = CHANNELS | {"pager": CHANNELS["pager"] | {"severity": "major"}}
    given = load(**{"notify.channels": channels}).notify
    told = [{it.route.name for it in try_routes(given, "a", "b", s, T0) if not it.why} for s in ("minor", "major")]  # type: ignore[arg-type]
    assert told == [{"chat", "boss"}, {"pager", "chat", "boss"}]
    with pytest.raises(NewnormalError) as caught:
        load(**{"notify.channels": channels, "notify.routes": [{"channels": ["chat"]}]})
    assert "notify.channels.pager.severity" in caught.value.what
