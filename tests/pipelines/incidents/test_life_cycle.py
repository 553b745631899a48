"""The life of an incident: opened, acknowledged, resolved, reopened, merged; and that nothing is said twice."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.state.segments import ShardState, pack, unpack
from pipelines.contracts.records import Incident
from pipelines.contracts.settings import load
from pipelines.contracts.version_names import VersionNames
from pipelines.jobs.incidents.verdicts import PARTS, ROWS, episodes, joined, newest, parts
from tests.pipelines.incidents.cases import MINUTE, SETTINGS, STEP, T0, Feed, episode, news, outage, parsed


def test_an_incident_is_resolved_only_after_a_quiet_time_and_says_when_it_ended() -> None:
    feed = Feed()
    feed.send(episode("a", "cpu", 0, 2 * MINUTE), 2 * MINUTE)
    assert feed.send([], 7 * MINUTE - 1) == [], "nothing is said while nothing changes"
    (written,) = feed.send([], 7 * MINUTE)
    resolved = parsed(written)
    assert (resolved.status, resolved.end, resolved.updated) == ("resolved", T0 + 2 * MINUTE, T0 + 7 * MINUTE)
    assert feed.send([], 60 * MINUTE) == []


def test_a_series_that_comes_and_goes_within_the_quiet_time_does_not_resolve_and_reopen() -> None:
    feed = Feed()
    states = []
    for turn in range(5):
        start = 3 * turn * MINUTE
        rows = feed.send(episode("a", "cpu", start, start + MINUTE), start + 2 * MINUTE)
        states += [parsed(row).status for row in rows]
    assert set(states) == {"open"} and len(feed.incidents) == 1


def test_a_novelty_soon_after_the_end_reopens_the_incident_and_a_later_one_is_a_new_one() -> None:
    feed = Feed()
    feed.send(episode("a", "cpu", 0, MINUTE), 8 * MINUTE)
    assert [each.status for each in feed.standing] == ["resolved"]
    feed.send(episode("a", "mem", 9 * MINUTE, 10 * MINUTE), 10 * MINUTE)
    (only,) = feed.standing
    assert (only.status, only.reopenings, only.end) == ("reopened", 1, None)
    feed.send(episode("a", "cpu", 40 * MINUTE, 41 * MINUTE), 42 * MINUTE)
    assert [each.status for each in feed.standing] == ["resolved", "open"]


def test_an_operator_acknowledges_an_incident_and_takes_it_back() -> None:
    feed = Feed()
    feed.send([news("a", "cpu", 0)], MINUTE)
    (only,) = feed.standing
    feed.acknowledge(only.id, MINUTE, note="on it")
    (mine,) = feed.standing
    assert (mine.status, mine.acknowledged_by, mine.note) == ("acknowledged", "ann", "on it")
    feed.acknowledge(only.id, 2 * MINUTE, active=False)
    assert feed.standing[0].status == "open" and feed.standing[0].acknowledged_by is None


def test_an_acknowledgement_does_not_outlive_the_end_of_the_incident() -> None:
    feed = Feed()
    feed.send(episode("a", "cpu", 0, 2 * MINUTE), 2 * MINUTE)
    feed.acknowledge(feed.standing[0].id, MINUTE)
    feed.send(episode("a", "cpu", 8 * MINUTE, 9 * MINUTE), 9 * MINUTE)
    assert feed.standing[0].status == "reopened"


def test_an_acknowledgement_lasts_as_long_as_the_incident_though_that_is_longer_than_a_series_without_news() -> None:
    feed, hour = Feed(), 60 * MINUTE
    feed.send([news("db", "disk", 0)], MINUTE)
    feed.acknowledge(feed.standing[0].id, MINUTE, note="on it")
    for at in range(hour, 60 * hour, 3 * hour):
        feed.send([news("db", "disk", at, since=T0)], at + MINUTE)
    (only,) = feed.standing
    assert (only.status, only.acknowledged_by, only.note) == ("acknowledged", "ann", "on it")


def test_a_novelty_that_is_dated_back_into_the_quiet_time_reopens_an_incident_that_was_resolved() -> None:
    feed = Feed()
    feed.send(episode("a", "cpu", 0, MINUTE), MINUTE)
    feed.send([], 7 * MINUTE)
    assert feed.standing[0].status == "resolved"
    feed.send([news("a", "mem", 7 * MINUTE, "state_change", since=T0 + 5 * MINUTE)], 8 * MINUTE)
    (only,) = feed.standing
    assert (only.status, only.reopenings) == ("reopened", 1)


def test_two_incidents_that_turn_out_to_be_one_keep_the_id_of_the_one_reported_first() -> None:
    feed = Feed()
    feed.send([row for name in "ab" for row in episode(name, "cpu", STEP if name == "b" else 0, 9 * MINUTE)], MINUTE)
    first, second = feed.standing
    feed.send(episode("c", "cpu", 2 * STEP, 9 * MINUTE), MINUTE)
    (only,) = feed.standing
    merged = feed.incidents[second.id]
    assert only.id == first.id and only.machine_count == 3
    assert (merged.status, merged.merged_into, merged.open_series) == ("merged", first.id, 0)


def test_a_novelty_that_is_taken_back_ends_its_incident() -> None:
    feed = Feed()
    feed.send([news("a", "cpu", 0)], MINUTE)
    feed.send([news("a", "cpu", 0, "normal", revision=1, incident_state=None, since=None)], 2 * MINUTE)
    (only,) = feed.standing
    assert (only.status, only.message) == ("resolved", "its novelties were taken back")


def test_an_incident_whose_first_novelty_is_taken_back_after_its_end_is_not_told_twice() -> None:
    feed = Feed()
    feed.send([news("a", "cpu", 0), *episode("a", "cpu", 2 * MINUTE, 4 * MINUTE)], 4 * MINUTE)
    feed.send([], 9 * MINUTE + 1000)
    (first,) = feed.standing
    assert (first.status, first.end) == ("resolved", T0 + 4 * MINUTE)
    feed.send([news("a", "cpu", 0, "normal", revision=1, incident_state=None, since=None)], 9 * MINUTE + 5000)
    back, true = feed.standing
    assert (back.id, back.status, back.message) == (first.id, "resolved", "its novelties were taken back")
    assert (true.status, true.start, true.end) == ("resolved", T0 + 2 * MINUTE, T0 + 4 * MINUTE)


def test_a_later_revision_replaces_an_earlier_one_whichever_comes_first() -> None:
    first, second = news("a", "cpu", 0, record_score=60.0), news("a", "cpu", 0, record_score=99.0, revision=1)
    for rows in ([first, second], [second, first]):
        feed = Feed()
        feed.send(rows, MINUTE)
        assert feed.standing[0].record_score == 99


def test_a_series_without_news_for_longer_than_allowed_no_longer_keeps_its_incident_open() -> None:
    feed = Feed()
    feed.send([news("a", "cpu", 0, "absence")], MINUTE)
    feed.send([], 23 * 60 * MINUTE)
    assert feed.standing[0].status == "open"
    feed.send([], 25 * 60 * MINUTE)
    assert feed.standing[0].status == "resolved"


def test_an_incident_that_stands_and_does_not_change_is_written_again_each_day_for_the_topic_forgets_after_seven() -> (
    None
):
    feed, day = Feed(settings=load(**{"incidents.longest": "30d"})), 24 * 60 * MINUTE
    (first,) = map(parsed, feed.send([news("a", "cpu", 0, "absence")], MINUTE))
    assert feed.send([], day) == []
    again = [parsed(row) for n in range(1, 9) for row in feed.send([], n * day + MINUTE)]
    assert [each.revision - first.revision for each in again] == [n * day for n in range(1, 9)]
    assert {each.model_copy(update={"revision": first.revision}).to_json() for each in again} == {first.to_json()}
    (resolved,) = map(parsed, feed.send([], 31 * day))
    assert resolved.status == "resolved"
    assert feed.send([], 40 * day) == []


def test_an_acknowledgement_that_lies_in_the_future_does_not_put_off_that_an_incident_is_written_again() -> None:
    """As where the watermark is behind the clock, or an operator's clock is ahead; Kafka forgets after seven days."""
    feed, day = Feed(settings=load(**{"incidents.longest": "30d"})), 24 * 60 * MINUTE
    feed.send([news("a", "cpu", 0, "absence")], MINUTE)
    feed.acknowledge(feed.standing[0].id, 3 * day)
    assert [len(feed.send([], n * day + MINUTE)) for n in range(1, 6)] == [1] * 5
    revisions = [parsed(row).revision for row in feed.run.rows]
    assert revisions == sorted(set(revisions))


def test_state_of_before_it_said_at_which_watermark_an_incident_was_written_opens() -> None:
    feed, day = Feed(settings=load(**{"incidents.longest": "30d"})), 24 * 60 * MINUTE
    feed.send([news("a", "cpu", 0, "absence")], MINUTE)
    state = ShardState(feed.run.states[0])
    tables = unpack(state.get("incidents"))
    state.put("incidents", pack(tables | {"written": tables["written"].drop("at")}))
    assert (feed.send([], day), len(feed.send([], day + MINUTE))) == ([], 1)


def test_with_a_short_retention_an_incident_is_written_again_before_the_topic_forgets_it() -> None:
    feed = Feed(settings=load(**{"kafka.retention": "2h"}))
    feed.send([news("a", "cpu", 0, "absence")], MINUTE)
    assert len(feed.send([], 61 * MINUTE)) == 1
    assert feed.send([], 120 * MINUTE) == []


def test_an_incident_that_is_open_where_a_version_ends_stays_open_however_far_the_watermark_runs() -> None:
    feed = Feed(settings=SETTINGS.of(VersionNames(), end=T0 + 10 * MINUTE))
    feed.send([news("a", "cpu", 0, "absence")], MINUTE)
    feed.send([], 25 * 60 * MINUTE)
    assert [each.status for each in feed.standing] == ["open"]


def test_an_episode_without_an_end_ends_where_the_next_one_of_its_series_begins() -> None:
    feed = Feed()
    feed.send([news("a", "cpu", 0)], MINUTE)
    closing = {"since": T0 + 2 * MINUTE, "incident_state": "closed", "record_score": 5.0}
    feed.send([news("a", "cpu", 3 * MINUTE, "recovered", **closing)], 4 * MINUTE)
    feed.send([], 10 * MINUTE)
    assert [each.status for each in feed.standing] == ["resolved"]


def test_a_novelty_counts_only_when_the_watermark_has_reached_the_end_of_its_window() -> None:
    feed = Feed()
    assert feed.send([news("a", "cpu", 0)], STEP - 1) == []
    assert len(feed.send([], STEP)) == 1


def test_the_state_forgets_incidents_that_are_over() -> None:
    def kept() -> dict[str, int]:
        stored = ShardState(feed.run.states[0]).get("incidents")
        return {name: table.height for name, table in unpack(stored).items()} if stored else {}

    feed = Feed()
    feed.send(outage(["a", "b"], 0, MINUTE), MINUTE)
    assert kept()["written"] == 1
    feed.send([], 60 * MINUTE)
    feed.send([], 61 * MINUTE)
    assert set(kept().values()) == {0}


@pytest.mark.parametrize(
    "later", [("example",), ("level", "metric_kind", "actual", "typical", "lower", "upper", "resumed", "kind", "worst")]
)
def test_state_of_before_verdicts_had_a_line_of_the_log_or_values_opens(later: tuple[str, ...]) -> None:
    first, second = (pl.DataFrame([news("a", "cpu", start, actual=2.0)], {**ROWS}) for start in (0, STEP))
    rows = newest(first.drop([name for name in later if name in ROWS and name != "kind"]), second)
    assert rows["window_start"].to_list() == [T0, T0 + STEP]
    both = joined(parts(first).drop(later), parts(second))
    assert both.columns == list(PARTS)
    assert [(each.metric, each.actual) for each in episodes(both)][-1] == ("cpu", 2.0)


def test_what_links_three_machines_links_them_after_a_correction_though_one_was_over_before() -> None:
    """A burst that is taken back linked two of three machines: so they were two groups, and the third was alone."""
    again, last = 9 * MINUTE + 50_000, news("b", "mem", 10 * MINUTE + 48_000)
    first = [row for name in "ab" for row in episode(name, "cpu", 0, 2 * MINUTE)] + episode("c", "cpu", 0, 30_000)
    first += [row for name in "ab" for row in episode(name, "cpu", again, 40 * MINUTE)]
    first += episode("a", "mem", again, 40 * MINUTE)
    taken_back = [last | {"kind": "normal", "since": None, "incident_state": None, "revision": 1}]
    live, once = Feed(), Feed()
    for rows, until in (([*first, last], 20.5), ([], 20.9), (taken_back, 20.95), ([], 80)):
        live.send(rows, round(until * MINUTE))
    once.send([*first, last, *taken_back], 80 * MINUTE)

    def known(feed: Feed) -> list[tuple[str, list[str], int | None]]:
        return [(each.id, sorted(m.entity for m in each.machines), each.end) for each in feed.standing]

    assert known(live) == known(once)
    assert [machines for _, machines, _ in known(once)] == [["a", "b", "c"]]


series = st.tuples(
    st.sampled_from("abcdef"),
    st.sampled_from(["cpu", "mem", "net"]),
    st.integers(0, 120).map(lambda n: n * STEP),
    st.integers(1, 40).map(lambda n: n * STEP),
)
cases = st.tuples(
    st.lists(series, min_size=1, max_size=14, unique_by=lambda s: (s[0], s[1])),
    st.lists(st.integers(0, 2_000_000), max_size=6),
    st.booleans(),
    st.randoms(use_true_random=False),
)


def final(rows: Sequence[dict[str, Any]], cuts: Sequence[int], placed: bool, shards: int = 1) -> list[Incident]:
    """The incidents after news in micro-batches that end at some watermarks, each with the news of its time."""
    feed, until = Feed(shards), 30 * MINUTE
    if placed:
        for vm, host in (("b", "a"), ("c", "a"), ("e", "d")):
            feed.place(vm, host)
    edges = [-1, *sorted(cuts), until]
    for low, high in pairwise(edges):
        feed.send([row for row in rows if low < row["window_end"] - T0 <= high], high)
    return [each.model_copy(update={"revision": 0}) for each in feed.standing]


@settings(max_examples=25, deadline=None)
@given(cases)
def test_the_final_incidents_are_the_same_whatever_the_order_of_news_and_the_bounds_of_micro_batches(
    case: tuple[list[tuple[str, str, int, int]], list[int], bool, random.Random],
) -> None:
    found, cuts, placed, shuffle = case
    rows = [row for entity, metric, start, size in found for row in episode(entity, metric, start, start + size + STEP)]
    once = final(rows, [], placed)
    assert once
    mixed = list(rows)
    shuffle.shuffle(mixed)
    assert final(mixed, [cut for cut in cuts if cut < 30 * MINUTE], placed, shards=2) == once
