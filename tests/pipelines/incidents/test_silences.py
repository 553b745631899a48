"""When nothing is received any more: one incident, which the first record ends, whatever the watermark says."""

from __future__ import annotations

from typing import Any

import pytest

from pipelines.contracts.records import Rule, Silence
from tests.pipelines.incidents.cases import MINUTE, T0, Feed, news


def silence(until: int | None = None, *, time: int = 6 * MINUTE, since: int = MINUTE, source: str = "*") -> Silence:
    """What the sender of heartbeats writes; times are milliseconds after `T0`."""
    end = None if until is None else T0 + until
    noticed = T0 + since + 5 * MINUTE
    return Silence(input=source, since=T0 + since, noticed=noticed, time=T0 + time if end is None else end, until=end)


def started() -> Feed:
    """A site whose watermark is known, and stands, as nothing comes any more."""
    feed = Feed()
    feed.send([], MINUTE)
    return feed


def test_the_silence_of_all_inputs_is_one_critical_incident_though_the_watermark_stands() -> None:
    feed = started()
    feed.say(silence())
    (only,) = feed.standing
    assert only.message == "nothing has been received since 00:01:00 UTC"
    assert (only.status, only.severity, only.start, only.opened) == ("open", "critical", T0 + MINUTE, T0 + 6 * MINUTE)
    written = len(feed.run.rows)
    feed.say(silence(time=7 * MINUTE), silence(time=8 * MINUTE))
    assert len(feed.run.rows) == written, "that it lasts is no news"


def test_the_first_record_ends_the_silence_and_says_how_long_it_was() -> None:
    feed = started()
    feed.say(silence(), silence(8 * MINUTE + 30_000))
    (only,) = feed.standing
    assert only.message == "nothing was received since 00:01:00 UTC; received again after 7 min 30 s"
    assert (only.status, only.end, only.open_series) == ("resolved", T0 + 8 * MINUTE + 30_000, 0)
    feed.send([], 60 * MINUTE)
    assert feed.standing == [only], "nothing is said of it later"


def test_an_input_that_stops_alone_is_a_major_incident_that_names_it() -> None:
    feed = started()
    feed.say(silence(source="telemetry.telegraf"))
    (only,) = feed.standing
    assert (only.message, only.severity) == (
        "nothing has been received from telemetry.telegraf since 00:01:00 UTC",
        "major",
    )


def test_a_replay_that_reads_all_at_once_says_the_same_as_live() -> None:
    """Kafka keeps the last message on each silence only: the topic is compacted."""
    live, replay = started(), Feed()
    live.say(silence())
    live.say(silence(9 * MINUTE))
    live.say(silence(time=46 * MINUTE, since=40 * MINUTE))
    with replay.at_once():
        replay.say(silence(9 * MINUTE), silence(time=46 * MINUTE, since=40 * MINUTE))
        replay.send([], MINUTE)
    replay.send([], MINUTE)

    def told(feed: Feed) -> list[dict[str, Any]]:
        return [each.model_dump(exclude={"revision"}) for each in feed.standing]

    assert told(live) == told(replay) and len(told(live)) == 2


def test_a_silence_that_lasts_is_written_again_each_day_though_the_watermark_stands() -> None:
    feed, day = started(), 24 * 60 * MINUTE
    feed.say(silence())
    (first,) = feed.standing
    for hours in range(1, 73):
        feed.say(silence(time=6 * MINUTE + hours * 60 * MINUTE))
    assert [row["revision"] - first.revision for row in feed.run.rows] == [0, day, 2 * day, 3 * day]
    assert feed.standing[0].model_copy(update={"revision": first.revision}) == first


def test_a_version_that_begins_later_says_nothing_of_silences_that_were_over_by_then() -> None:
    feed = Feed()
    feed.say(silence(9 * MINUTE))
    feed.send([], 600 * MINUTE)
    assert feed.standing == []


def test_it_is_acknowledged_like_any_other_incident() -> None:
    feed = started()
    feed.say(silence())
    feed.acknowledge(feed.standing[0].id, 7 * MINUTE, note="the switch")
    (only,) = feed.standing
    assert (only.status, only.acknowledged_by, only.note) == ("acknowledged", "ann", "the switch")


@pytest.mark.parametrize(
    ("rule", "opened"),
    [
        ({}, 30 * MINUTE),
        ({"entity": "web-*"}, 6 * MINUTE),
        ({"metric": "cpu"}, 6 * MINUTE),
        ({"skip_result": False, "skip_learning": True}, 6 * MINUTE),
        ({"end": T0 + 5 * MINUTE}, 6 * MINUTE),
        ({"dates": ["2026-01-05"]}, 30 * MINUTE),
        ({"dates": ["2026-01-06"]}, 6 * MINUTE),
        ({"times": "mon"}, 30 * MINUTE),
        ({"times": "mon-sun"}, 30 * MINUTE),
        ({"times": "tue"}, 6 * MINUTE),
        ({"times": "00:00-00:15"}, 15 * MINUTE),
    ],
)
def test_the_maintenance_of_the_whole_site_mutes_it_until_it_is_over(rule: dict[str, Any], opened: int) -> None:
    """docs/rules.md: what applies to all machines and metrics; a silence that goes on is told when it ends."""
    feed = started()
    feed.say(Rule(**{"id": "night", "time": T0, "end": T0 + 30 * MINUTE, "skip_result": True, **rule}), silence())
    assert [each.opened - T0 for each in feed.standing] == ([opened] if opened == 6 * MINUTE else [])
    feed.say(silence(time=31 * MINUTE))
    assert [each.opened - T0 for each in feed.standing] == [opened]


def test_a_silence_within_a_maintenance_is_never_told() -> None:
    feed = started()
    feed.say(Rule(id="night", time=T0, end=T0 + 30 * MINUTE, skip_result=True), silence(), silence(20 * MINUTE))
    feed.send([news("a", "cpu", 40 * MINUTE)], 50 * MINUTE)
    assert [each.message for each in feed.standing if "received" in each.message] == []


def test_a_maintenance_that_was_withdrawn_mutes_nothing() -> None:
    feed = started()
    feed.say(Rule(id="night", time=T0, end=T0 + 30 * MINUTE, skip_result=True))
    feed.say(Rule(id="night", time=T0 + MINUTE, active=False), silence())
    assert [each.opened for each in feed.standing] == [T0 + 6 * MINUTE]
