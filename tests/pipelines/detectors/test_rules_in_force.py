"""From when to when a rule is in force that is postponed, planned anew or removed before it begins."""

from __future__ import annotations

import polars as pl

from engine.spec.duration import NEVER
from engine.state.segments import DictSegments, ShardState
from pipelines.contracts.records import Rule
from pipelines.jobs.detectors.control_messages import ControlMessages

HOUR = 3_600_000


def given(control: ControlMessages, *rules: Rule, base: int = NEVER, before: int = NEVER) -> list[tuple[int, Rule]]:
    """Rules that arrive in a micro-batch; what `take` returns of them."""
    texts = [rule.to_json().decode() for rule in rules]
    news = pl.DataFrame({"rule": texts, "label": [None] * len(texts)}, {"rule": pl.String, "label": pl.String})
    return control.take(news, base, before, before)[0]


def times(control: ControlMessages) -> list[tuple[int, int]]:
    """From when to when versions of rules are in force, hours."""
    return [(each.start // HOUR, each.end // HOUR) for each in control.in_force()]


def maintenance(said: int, start: int, end: int) -> Rule:
    """A maintenance that is said at an hour, from an hour until another one."""
    return Rule(id="upgrade", time=said * HOUR, start=start * HOUR, end=end * HOUR, skip_result=True)


def test_a_maintenance_that_is_postponed_mutes_nothing_at_its_first_time() -> None:
    """At 12 o'clock for 22 to 24; at 13 o'clock for the same hours of the next day."""
    control = ControlMessages(ShardState(DictSegments()))
    tonight, tomorrow = maintenance(12, 22, 24), maintenance(13, 46, 48)
    given(control, tonight)
    assert times(control) == [(22, 24)]
    given(control, tomorrow)
    assert times(control) == [(46, 48)]
    control.save(base=40 * HOUR)
    again = ControlMessages(control.state)
    assert [rule for _, rule in again.versions] == [tomorrow] and times(again) == [(46, 48)]


def test_a_maintenance_that_lasts_when_it_is_said_anew_stays_in_force_until_the_new_one_begins_or_its_own_end() -> None:
    for again, expected in (
        (maintenance(23, 25, 27), [(22, 24), (25, 27)]),
        (maintenance(23, 23, 27), [(22, 23), (23, 27)]),
    ):
        control = ControlMessages(ShardState(DictSegments()))
        given(control, maintenance(12, 22, 24))
        given(control, again)
        assert times(control) == expected


def test_a_plan_that_a_later_plan_replaces_ends_nothing() -> None:
    """A rule in force from 1 on is planned to change at 10, then at 20 instead: it stays until 20."""
    control = ControlMessages(ShardState(DictSegments()))
    always = Rule(id="upgrade", time=HOUR, report=True, above=9)
    given(control, always, maintenance(2, 10, 30), maintenance(3, 20, 30))
    assert times(control) == [(1, 20), (20, 30)]


def test_a_maintenance_that_was_removed_before_it_began_stays_removed() -> None:
    """Also when the removal lies so far in the past that the state no longer has it."""
    control = ControlMessages(ShardState(DictSegments()))
    given(control, maintenance(12, 22, 24), Rule(id="upgrade", time=13 * HOUR, active=False))
    for base in (12, 14, 20):
        control.save(base * HOUR)
        control = ControlMessages(control.state)
        assert times(control) == []


def test_a_postponement_that_arrives_late_has_windows_judged_again_from_when_it_was_said() -> None:
    control = ControlMessages(ShardState(DictSegments()))
    given(control, maintenance(12, 22, 24))
    postponed = maintenance(21, 46, 48)
    assert given(control, postponed, base=20 * HOUR, before=23 * HOUR) == [(21 * HOUR, postponed)]
    assert times(control) == [(46, 48)]


def test_a_postponement_that_comes_too_late_changes_nothing_that_was_judged_also_after_a_restart() -> None:
    """It was said at 13, but arrives at 23:30, when those windows were judged for good that end until 23."""
    control = ControlMessages(ShardState(DictSegments()))
    given(control, maintenance(12, 22, 25))
    postponed, arrival = maintenance(13, 24, 26), 23 * HOUR + HOUR // 2
    assert given(control, postponed, base=23 * HOUR, before=arrival) == [(arrival, postponed)]
    control.save(base=23 * HOUR)
    for each in (control, ControlMessages(control.state)):
        assert times(each) == [(22, 24), (24, 26)]
