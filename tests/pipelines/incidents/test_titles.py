"""What the title of an incident and its series say: what changed, by how much, where, and who shows it."""

from __future__ import annotations

from typing import Any

import pytest

from pipelines.contracts import topics
from pipelines.contracts.records import Incident, Placement
from pipelines.jobs.incidents.title import moved
from tests.pipelines.incidents.cases import MINUTE, STEP, T0, Feed, episode, news

AT = 10 * MINUTE
"""T0 is midnight UTC, so that this is 00:10:00."""


def worst(entity: str, metric: str, actual: float, typical: float, **more: Any) -> list[dict[str, Any]]:
    """A series whose worst verdict, the first, has these values; the band is a tenth of the usual value wide."""
    at = more.pop("at", AT)
    first, last = episode(entity, metric, at, at + 2 * MINUTE, score=more.pop("record_score", 80.0))
    band = {"lower": typical - 0.05 * abs(typical), "upper": typical + 0.05 * abs(typical)}
    return [first | {"actual": actual, "typical": typical} | band | more, last]


def silent(entity: str, at: int = AT, until: int | None = None) -> list[dict[str, Any]]:
    """A machine that sends nothing, and whose first window after that begins at ``until``."""
    rows = [news(entity, "_machine", at, "absence", record_score=52.0)]
    if until is not None:
        closing = {"since": T0 + at, "incident_state": "closed", "record_score": 5.0}
        rows.append(news(entity, "_machine", until, "recovered", **closing))
    return rows


def only(feed: Feed) -> Incident:
    (one,) = feed.standing
    return one


def test_a_surge_of_a_vm_says_what_how_much_in_which_direction_and_that_its_host_shows_it() -> None:
    feed = Feed()
    feed.place("vm-3", "host-1")
    rows = [
        *worst("vm-3", "http.requests", 380.0, 100.0, record_score=90.0, metric_kind="counter"),
        *worst("vm-3", "cpu.util", 0.71, 0.27, metric_kind="ratio"),
        *worst("host-1", "load", 30.0, 16.0),
    ]
    feed.send(rows, AT + MINUTE)
    found = only(feed)
    assert found.message == (
        "vm-3: http.requests 3.8 × the usual, cpu.util 27 → 71 %; host-1, on which it runs, shows it"
    )
    assert [(s.entity, s.metric, s.actual, s.typical, s.change) for s in found.series] == [
        ("vm-3", "http.requests", 380.0, 100.0, "3.8 × the usual"),
        ("vm-3", "cpu.util", 0.71, 0.27, "27 → 71 %"),
        ("host-1", "load", 30.0, 16.0, "1.9 × the usual"),
    ]


def test_values_are_those_of_the_worst_verdict_whichever_comes_last() -> None:
    """The window of score 95 counts, not the last one, nor the one with the largest value."""
    rows = [
        news("a", "m", AT, record_score=70.0, actual=5000.0, typical=100.0, since=T0 + AT),
        news("a", "m", AT + STEP, record_score=95.0, actual=400.0, typical=100.0, since=T0 + AT),
        news("a", "m", AT + 2 * STEP, record_score=80.0, actual=300.0, typical=100.0, since=T0 + AT),
    ]
    for order in (rows, rows[::-1]):
        feed = Feed()
        feed.send(order, AT + MINUTE)
        assert only(feed).message == "a: m 4 × the usual"


def test_four_series_are_two_that_are_named_and_a_number_and_three_are_named() -> None:
    for count, end in ((3, "m2 2 × the usual"), (4, "m1 2 × the usual and 2 more")):
        feed = Feed()
        rows = [row for n in range(count) for row in worst("a", f"m{n}", 2.0, 1.0, record_score=90.0 - n)]
        feed.send(rows, AT + MINUTE)
        assert only(feed).message.endswith(end)


def test_a_machine_that_is_silent_says_since_when_while_it_lasts_and_for_how_long_when_it_sends_again() -> None:
    feed = Feed()
    feed.place("vm", "host")
    feed.send([*silent("vm"), *worst("host", "load", 15.0, 16.0, record_score=60.0)], AT + MINUTE)
    found = only(feed)
    assert found.message == "vm has sent nothing since 00:10:00 UTC; host, on which it runs, shows it"
    assert found.severity == "major", "a machine that is gone is no warning"
    first = found.series[0]
    assert (first.entity, first.metric, first.kind, first.end) == ("vm", "_machine", "absence", None)
    feed.send(silent("vm", AT, AT + 90_000)[1:], AT + 3 * MINUTE)
    found = only(feed)
    assert found.message == (
        "vm sent nothing for 1 min 30 s from 00:10:00 UTC; it sends again; host, on which it runs, shows it"
    )
    assert (found.series[0].change, found.series[0].end) == ("sent nothing for 1 min 30 s", T0 + AT + 90_000)


def test_a_machine_that_sends_something_unusual_after_its_silence_sends_again_though_nothing_says_so() -> None:
    """The first window after a silence may be unusual by itself; then no verdict says `recovered`."""
    feed = Feed()
    feed.send([*silent("vm"), news("vm", "cpu", AT + 90_000, actual=9.0, typical=1.0)], AT + 3 * MINUTE)
    assert "it sends again" in only(feed).message


def test_a_machine_that_never_sends_again_is_not_said_to_when_its_incident_is_over() -> None:
    """`incidents.longest`, a day, ends the incident of a machine that is gone."""
    feed = Feed()
    feed.send(silent("vm"), AT + MINUTE)
    feed.send([], AT + 25 * 60 * MINUTE)
    (found,) = feed.incidents.values()
    assert (found.status, found.message) == ("resolved", "vm has sent nothing since 00:10:00 UTC")
    assert (found.series[0].end, found.series[0].change) == (None, "has sent nothing since 00:10:00 UTC")


@pytest.mark.parametrize("count", [3, 24])
def test_machines_that_fall_silent_alike_are_one_critical_incident(count: int) -> None:
    """Three are no coincidence, `MANY`; each on a host of its own."""
    feed = Feed()
    names = [f"m{n:02}" for n in range(count)]
    for name in names:
        feed.place(name, f"host-of-{name}")
    feed.send([row for n, name in enumerate(names) for row in silent(name, AT + n % 3 * STEP)], AT + MINUTE)
    found = only(feed)
    who = "m00, m01 and m02" if count == 3 else "24 machines"
    assert found.message == f"{who} have sent nothing since 00:10:00 UTC"
    assert (found.severity, found.machine_count) == ("critical", count)


def test_a_silence_of_many_machines_is_no_part_of_a_release_five_minutes_before() -> None:
    feed = Feed()
    feed.send([row for n in range(6) for row in worst("m00", f"metric-{n}", 4.0, 1.0)], AT + 4 * MINUTE)
    feed.send([row for n in range(24) for row in silent(f"m{n:02}", AT + 5 * MINUTE)], AT + 7 * MINUTE)
    release, silence = feed.standing
    assert (release.machine_count, silence.machine_count) == (1, 24)
    assert silence.message == "24 machines have sent nothing since 00:15:00 UTC"


def test_some_of_the_silent_machines_send_again() -> None:
    feed = Feed()
    feed.send([*silent("a"), *silent("b"), *silent("c", AT, AT + MINUTE)], AT + 2 * MINUTE)
    assert (
        only(feed).message == "a and b have sent nothing since 00:10:00 UTC; c sent nothing for 1 min and sends again"
    )


def test_a_silence_that_is_over_does_not_date_that_of_a_machine_that_fell_silent_later() -> None:
    feed = Feed()
    feed.send([*silent("a", AT, AT + 30_000), *silent("b", AT + 20_000)], AT + 2 * MINUTE)
    assert only(feed).message == "b has sent nothing since 00:10:20 UTC; a sent nothing for 30 s and sends again"


def test_two_silences_that_are_over_are_told_with_the_length_of_each_or_as_one_if_they_are_alike() -> None:
    for ends, told in (
        (
            (30_000, 110_000),
            "a sent nothing for 30 s from 00:10:00 UTC, b for 1 min 30 s from 00:10:20 UTC; they send again",
        ),
        ((60_000, 80_000), "a and b sent nothing for 1 min from 00:10:00 UTC; they send again"),
    ):
        feed = Feed()
        feed.send([*silent("a", AT, AT + ends[0]), *silent("b", AT + 20_000, AT + ends[1])], AT + 3 * MINUTE)
        assert only(feed).message == told


def test_errors_that_a_log_never_had_are_an_incident_that_quotes_the_template_and_other_lines_are_none() -> None:
    feed = Feed()
    lost = news("db", "logs", AT, record_score=51.0, template="app connection to database lost, retry <n>", level=3)
    feed.send(
        [lost, news("web", "logs", AT, record_score=59.0, template="kernel eth<n>: link is up", level=6)],
        AT,
        topics.LOG_NEWS,
    )
    feed.send([], AT + MINUTE)
    found = only(feed)
    assert found.message == ('db: its log has unusual lines, such as "app connection to database lost, retry <n>"')
    assert found.severity == "major"


def test_a_huge_deviation_of_one_series_is_critical_though_its_score_is_below_70() -> None:
    """50 → 5,000 in a series of which little is known scores 69."""
    feed = Feed()
    feed.send([news("a", "m", AT, record_score=69.0, actual=5000.0, typical=50.0, lower=43.0, upper=57.0)], AT + MINUTE)
    assert only(feed).severity == "critical"


@pytest.mark.parametrize("windows", [8, 9, 12])
def test_the_start_of_a_machine_on_which_nothing_had_happened_yet_is_not_critical(windows: int) -> None:
    """docs/incidents.md: after few values, a band of nearly no width is no measure of how large a deviation is."""
    feed = Feed()
    size = {"record_score": 69.0, "actual": 17.0, "typical": 0.0, "lower": -0.001, "upper": 0.001, "values": windows}
    feed.send([news("a", f"net.{n}", AT, **size) for n in range(5)], AT + MINUTE)
    assert only(feed).severity == "major"


@pytest.mark.parametrize(("lower", "upper"), [(43.0, 57.0), (49.999, 50.001)])
def test_a_jump_to_a_hundred_times_the_value_after_ten_minutes_is_critical(lower: float, upper: float) -> None:
    feed = Feed()
    size = {"actual": 5000.0, "typical": 50.0, "lower": lower, "upper": upper, "values": 60.0}
    feed.send([news("a", "m", AT, record_score=69.0, **size)], AT + MINUTE)
    assert only(feed).severity == "critical"


def test_a_slow_page_is_an_incident_and_a_value_just_outside_its_band_is_none() -> None:
    feed = Feed()
    feed.send([news("a", "m", AT, record_score=68.0, actual=100.0, typical=20.0, lower=15.0, upper=25.0)], AT + MINUTE)
    feed.send([news("b", "m", AT, record_score=60.0, actual=26.0, typical=20.0, lower=15.0, upper=25.0)], AT + MINUTE)
    assert (only(feed).message, only(feed).severity) == ("a: m 5 × the usual", "major")


def test_the_log_of_a_host_half_a_minute_later_is_not_the_cause_of_five_series_of_its_vm() -> None:
    feed = Feed()
    feed.place("vm", "host")
    rows = [row for n in range(5) for row in worst("vm", f"metric-{n}", 4.0, 1.0, record_score=71.0)]
    feed.send([news("host", "logs", AT + 3 * STEP, record_score=53.0, template="t")], AT, topics.LOG_NEWS)
    feed.send(rows, AT + 2 * MINUTE)
    (found,) = [each for each in feed.standing if each.machines[0].entity == "vm"]
    assert found.candidates[0].entity == "vm"


def test_a_host_that_begins_with_its_only_novel_vm_shows_what_that_does() -> None:
    feed = Feed()
    feed.place("vm", "host")
    feed.send([*worst("vm", "cpu", 4.0, 1.0, record_score=66.0), *worst("host", "cpu", 2.0, 1.0)], AT + MINUTE)
    found = only(feed)
    assert [c.entity for c in found.candidates] == ["vm", "host"]
    assert "it shows what vm does, which depends on it" in found.candidates[1].reason


def test_a_host_that_began_clearly_before_its_only_novel_vm_is_the_cause() -> None:
    """Half a minute is `incidents.together` halved; forty seconds are more."""
    feed = Feed()
    feed.place("vm", "host")
    later = [row | {"since": row["since"] + 4 * STEP} for row in worst("vm", "cpu", 4.0, 1.0)]
    feed.send([*worst("host", "disk", 2.0, 1.0), *later], AT + MINUTE)
    assert only(feed).candidates[0].entity == "host"


def test_a_machine_that_is_silent_again_has_sent_nothing_since_the_second_time() -> None:
    feed = Feed()
    feed.send(silent("web-1", until=AT + MINUTE), AT + 2 * MINUTE)
    feed.send(silent("web-1", AT + 4 * MINUTE), AT + 5 * MINUTE)
    found = only(feed)
    assert found.message == "web-1 has sent nothing since 00:14:00 UTC"
    assert [(each.since, each.end) for each in found.series] == [(T0 + AT + 4 * MINUTE, None)]
    assert found.open_series == 1


def test_of_metrics_that_stopped_those_are_told_that_still_send_nothing() -> None:
    feed = Feed()
    gone = [row for name in ("cpu", "mem", "net") for row in episode("a", name, 0, 2 * MINUTE)]
    rows = [row | {"kind": "absence"} if row["kind"] == "anomaly" else row for row in gone]
    feed.send(rows[:-1], 3 * MINUTE)
    assert only(feed).message == "a: net has sent nothing since 00:00:00 UTC"
    feed.send(rows[-1:], 3 * MINUTE + STEP)
    assert only(feed).message == "a: cpu, mem, net sent nothing for 1 min 50 s"


def test_a_machine_that_left_its_host_and_has_no_place_since_did_not_move_to_none() -> None:
    left = Placement(entity="vm-1", parent=None, moved_from="host-1", time=T0)
    assert moved([left]) == "vm-1 left host-1; "


def test_what_comes_and_goes_again_and_again_is_one_incident_that_is_said_to_be_flapping() -> None:
    """Each pause is a little longer than what one coming is held for, but no longer than what so many are."""
    feed, at = Feed(), AT
    said, starts = [], []
    for pause in (8, 15, 25, 35, 45, 55, 55, 55):
        feed.send(worst("a", "m", 400.0, 100.0, at=at), at + 2 * MINUTE + STEP)
        said.append(only(feed).message)
        starts.append(at)
        at += (pause + 2) * MINUTE
    assert said[:2] == ["a: m 4 × the usual"] * 2
    assert said[2] == said[3] == "a: m 4 × the usual, flapping (3 times or more since 00:10:00 UTC)"
    assert said[4].endswith("flapping (5 times or more since 00:10:00 UTC)")
    feed.send([], starts[-1] + 2 * MINUTE + 6 * 5 * MINUTE)
    assert only(feed).status == "resolved" and only(feed).end == T0 + starts[-1] + 2 * MINUTE
    assert only(feed).series[0].times == 8


def test_what_will_be_full_is_told_with_its_interval_of_the_last_forecast() -> None:
    feed = Feed()
    hour = 60 * MINUTE

    def told(at: int, earliest: int, latest: int) -> dict[str, Any]:
        times = {"full_earliest": T0 + STEP + earliest, "full_latest": T0 + STEP + latest, "since": T0 + AT}
        return news("db-1", "disk.used{path=/}~full", at, "exhaustion", record_score=75.0, actual=91.0) | times

    feed.send([told(AT, AT + 3 * hour, AT + 9 * hour)], AT + MINUTE)
    found = only(feed)
    assert found.message == "db-1: disk.used{path=/} is full in 3 to 9 hours (95 %), from 00:10:10 UTC"
    assert [series.kind for series in found.series] == ["exhaustion"]
    feed.send([told(AT + 2 * hour, AT + 5 * hour, AT + 6 * hour)], AT + 2 * hour + MINUTE)
    assert only(feed).message == "db-1: disk.used{path=/} is full in 3 to 4 hours (95 %), from 02:10:10 UTC"
    closing = {"since": T0 + AT, "incident_state": "closed", "record_score": 0.0}
    over = news("db-1", "disk.used{path=/}~full", AT + 3 * hour, "recovered", **closing)
    feed.send([over], AT + 4 * hour)
    assert only(feed).status == "resolved"
    assert only(feed).message == "db-1: disk.used{path=/} has room again, or fills more slowly"
