"""Quiet hours, the most messages within a time, and summaries of what was held back."""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.contracts.records.severity import SEVERITIES
from pipelines.contracts.settings.notify import NotifySettings
from pipelines.contracts.week_times import is_within
from pipelines.notify.news import News
from pipelines.notify.planning import plan
from tests.pipelines.notify.receivers import T0, incident

MINUTE = 60_000
NIGHT = NotifySettings(quiet="22:00-07:00,12:00-13:00", timezone="Europe/Stockholm", breakthrough="critical")


def at(text: str) -> int:
    """Epoch milliseconds of a time in Stockholm."""
    return int(datetime.fromisoformat(text).replace(tzinfo=ZoneInfo("Europe/Stockholm")).timestamp() * 1000)


def some(*severities: str) -> list[News]:
    return [News(incident(f"i{n}", severity=each, opened=T0 + n), "opened") for n, each in enumerate(severities)]


def ids(found: tuple[News, ...]) -> list[str]:
    return [each.incident.id for each in found]


@pytest.mark.parametrize(
    ("time", "quiet"),
    [
        ("2026-01-10T21:59", False), ("2026-01-10T22:00", True), ("2026-01-11T06:59", True),
        ("2026-01-11T07:00", False), ("2026-01-11T12:30", True), ("2026-07-10T21:59", False),
        ("2026-07-10T22:00", True), ("2026-07-11T07:00", False),
    ],
)  # fmt: skip
def test_quiet_hours_are_those_of_the_wall_clock_in_winter_and_in_summer(time: str, quiet: bool) -> None:
    assert is_within(NIGHT.quiet, NIGHT.timezone, at(time)) == quiet


def test_at_night_only_what_is_severe_is_told_and_the_rest_is_one_message_in_the_morning() -> None:
    due = some("minor", "critical", "major")
    night = plan(due, NIGHT, at("2026-01-10T23:00"), [], [])
    assert (ids(night.single), night.together, night.held) == (["i1"], (), {"i0", "i2"})
    rest = [each for each in due if each.incident.id in night.held]
    fresh = News(incident("new", severity="minor"), "opened")
    morning = plan([*rest, fresh], NIGHT, at("2026-01-11T07:00"), [], night.held)
    assert (ids(morning.single), ids(morning.together), morning.held) == (["new"], ["i2", "i0"], frozenset())


def test_a_single_one_that_was_held_back_is_told_as_itself() -> None:
    assert ids(plan(some("minor"), NIGHT, at("2026-01-11T07:00"), [], ["i0"]).single) == ["i0"]


def test_more_than_the_rate_allows_become_the_most_severe_alone_and_one_summary() -> None:
    limited = NotifySettings(rate=3, per="10m")
    found = plan(some("minor", "major", "warning", "critical", "minor"), limited, T0, [], [])
    assert (ids(found.single), ids(found.together)) == (["i3", "i1"], ["i0", "i4", "i2"])
    full = plan(some("critical", "minor"), limited, T0, [T0 - MINUTE] * 3, [])
    assert (full.single, full.together, full.held) == ((), (), {"i0", "i1"})
    later = plan(some("critical", "minor"), limited, T0 + 9 * MINUTE + 1, [T0 - MINUTE, T0, T0], full.held)
    assert (later.single, ids(later.together)) == ((), ["i0", "i1"])


@given(
    severities=st.lists(st.sampled_from(SEVERITIES), max_size=12),
    rate=st.integers(1, 5),
    sent=st.lists(st.integers(0, 20), max_size=6),
    held=st.sets(st.integers(0, 11)),
    hour=st.integers(0, 23),
)
def test_never_more_messages_than_the_rate_and_nothing_is_lost_or_told_twice(
    severities: list[str], rate: int, sent: list[int], held: set[int], hour: int
) -> None:
    settings = NotifySettings(rate=rate, per="10m", quiet="22:00-07:00")
    now = T0 + hour * 60 * MINUTE
    times = [now - ago * MINUTE for ago in sent]
    found = plan(some(*severities), settings, now, times, [f"i{n}" for n in held])
    messages = len(found.single) + bool(found.together)
    assert messages <= max(0, rate - sum(ago < 10 for ago in sent))
    told = [*ids(found.single), *ids(found.together), *found.held]
    assert sorted(told) == sorted(f"i{n}" for n in range(len(severities)))
    assert len(found.together) != 1
