"""A pod that was ended on purpose is no incident; one that is dead is."""

from __future__ import annotations

import time
from collections import Counter
from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from engine.state.segments import DictSegments, ShardState
from pipelines.contracts.records import Change
from pipelines.contracts.records.change import ChangeKind
from pipelines.jobs.detectors import said_ends
from pipelines.jobs.detectors.control_messages import ControlMessages
from tests.pipelines.detectors.shard import COLUMNS, T0, Event, Shard, run, window

MINUTE = 60_000
ENDS = "bcdfghjklmnpqrstvwxz2456789"


def pod(number: int, version: str = "7d4b9c6f5") -> str:
    """A name as a deployment gives it."""
    return f"shop/cart-{version}-x2x7{ENDS[number]}"


def lives(name: str, first: int, last: int, metrics: tuple[str, ...] = ("cpu", "mem"), odd: int = 0) -> list[Event]:
    """The windows of a machine; the values of its last ones are odd."""
    rng = np.random.default_rng(sum(name.encode()))
    events = []
    for number in range(first, last + 1):
        for metric in metrics:
            value = 500.0 if number > last - odd else float(rng.normal(50, 2))
            events.append(window(name, metric, number, value, MINUTE))
    return events


def absent(shard: Shard) -> set[tuple[str, int]]:
    """The machines that were said to be absent, and the minute of the first window that did not come."""
    verdicts = pl.concat(shard.verdicts).filter(pl.col("kind") == "absence")
    return {(name, (end - T0) // MINUTE) for name, end in verdicts.select("entity", "window_end").rows()}


def replaced(surge: int = 0) -> list[Event]:
    """Five pods; one ends after 60 minutes, and another takes its place ``surge`` minutes before."""
    others = [event for n in range(1, 5) for event in lives(pod(n), 1, 120)]
    return others + lives(pod(0), 1, 60) + lives(pod(5), 61 - surge, 120)


@pytest.mark.parametrize("surge", [0, 2], ids=["in turn", "new one first"])
@pytest.mark.parametrize("cuts", [[120], [58, *range(60, 80), 120]], ids=["at once", "each minute"])
def test_a_pod_whose_workload_goes_on_with_as_many_others_is_not_absent(surge: int, cuts: list[int]) -> None:
    shard = run(replaced(surge), cuts, MINUTE)
    assert absent(shard) == set()
    belief = shard.believed[pod(0), "_machine"]
    assert (belief["kind"], belief["incident_state"]) == ("absence", "closed"), "no longer expected"


@pytest.mark.parametrize("cuts", [[120], [58, *range(60, 80), 120]], ids=["at once", "each minute"])
def test_a_pod_that_is_not_replaced_is_absent_and_so_is_a_machine_whose_name_is_its_own(cuts: list[int]) -> None:
    others = [event for n in range(1, 5) for event in lives(pod(n), 1, 120)]
    shard = run(others + lives(pod(0), 1, 60), cuts, MINUTE)
    assert absent(shard) == {(pod(0), 61)}
    hosts = [event for n in range(1, 5) for event in lives(f"web-{n}", 1, 120)]
    shard = run(hosts + lives("web-0", 1, 60) + lives("web-5", 55, 120), cuts, MINUTE)
    assert absent(shard) == {("web-0", 61)}


def test_of_two_that_fall_silent_where_one_is_replaced_both_are_absent() -> None:
    others = [event for n in range(2, 5) for event in lives(pod(n), 1, 120)]
    shard = run(others + lives(pod(0), 1, 60) + lives(pod(1), 1, 60) + lives(pod(5), 58, 120), [120], MINUTE)
    assert absent(shard) == {(pod(0), 61), (pod(1), 61)}


def test_all_pods_of_a_version_may_be_replaced_at_once() -> None:
    old = [event for n in range(5) for event in lives(pod(n), 1, 60)]
    new = [event for n in range(5) for event in lives(pod(n, "6b9f8dcb7"), 62, 120)]
    assert absent(run(old + new, [120], MINUTE)) == set()


@pytest.mark.parametrize("cuts", [[120], [58, *range(60, 80), 120]], ids=["at once", "each minute"])
def test_incidents_of_a_pod_that_was_ended_are_closed(cuts: list[int]) -> None:
    others = [event for n in range(1, 5) for event in lives(pod(n), 1, 120)]
    shard = run(others + lives(pod(0), 1, 60, odd=4) + lives(pod(5), 61, 120), cuts, MINUTE)
    mine = pl.concat(shard.verdicts).filter(pl.col("entity") == pod(0), pl.col("window_end") >= T0 + 57 * MINUTE)
    opened = set(mine.filter(pl.col("incident_state") == "open")["metric"])
    assert opened >= {"cpu", "mem", "_peers.cpu"}
    ends = mine.filter(pl.col("incident_state") == "closed")
    assert set(ends["metric"]) == opened
    assert set(ends["kind"]) == {"normal"}
    assert set(ends["window_end"]) == {T0 + 62 * MINUTE}
    for metric in opened - {"_peers.cpu", "_peers.mem"}:
        assert shard.believed[pod(0), metric]["incident_state"] == "closed"


def test_a_pod_that_is_back_under_its_name_is_a_machine_like_any_other() -> None:
    shard = run(replaced() + lives(pod(0), 80, 120), [61, 66, 79, 81, 120], MINUTE)
    assert shard.believed[pod(0), "cpu"]["kind"] in ("normal", "recovered")


def said(machine: str, minute: int, kind: ChangeKind = "ended", at: int | None = None) -> Event:
    """A change of a machine."""
    when = T0 + minute * MINUTE if at is None else at
    change = Change(id=f"{machine}-{minute}", time=when, kind=kind, message="gone", machines=[machine])
    return {"window_end": change.time, "change": change.to_json().decode()}


def alone() -> list[Event]:
    return lives("web-0", 1, 60) + lives("web-1", 1, 120)


@pytest.mark.parametrize("machine", ["web-0", "*0"])
@pytest.mark.parametrize("minute", [50, 60, 62])
def test_a_machine_that_was_said_to_have_been_ended_is_not_absent(machine: str, minute: int) -> None:
    shard = run([*alone(), said(machine, minute)], [58, 62, 80, 120], MINUTE)
    assert absent(shard) == set()
    assert shard.believed["web-0", "_machine"]["incident_state"] == "closed"


@pytest.mark.parametrize(
    "change", [said("web-0", 60, "restart"), said("web-1", 60), said("web-0", -2)], ids=["kind", "machine", "long ago"]
)
def test_other_changes_explain_no_silence(change: Event) -> None:
    assert absent(run([*alone(), change], [58, 62, 80, 120], MINUTE)) == {("web-0", 61)}


def test_an_absence_is_closed_when_it_is_said_later_that_the_machine_was_ended() -> None:
    shard = Shard(MINUTE)
    for begin, end in ((0, 60), (60, 70), (70, 90), (90, 120)):
        events = [e for e in alone() if T0 + begin * MINUTE < e["window_end"] <= T0 + end * MINUTE]
        shard.take([*events, *([said("web-0", 60)] if end == 90 else [])], end)
    assert absent(shard) == {("web-0", 61)}
    last = shard.last_verdicts().filter(pl.col("entity") == "web-0", pl.col("metric") == "_machine").tail(1)
    assert last.select("kind", "incident_state").row(0) == ("normal", "closed")
    assert shard.believed["web-0", "_machine"]["incident_state"] == "closed"


@pytest.mark.parametrize("arrives", [90, 100, 135], ids=lambda minute: f"heard at {minute}")
@pytest.mark.parametrize("goes_on", [True, False], ids=["others go on", "silence"])
def test_an_absence_is_closed_once_by_an_end_at_whatever_watermark_it_is_heard(arrives: int, goes_on: bool) -> None:
    """It is said at minute 91; who says it is ahead of the watermark, and ends of others are said before and after."""
    shard = Shard(MINUTE)
    every = lives("web-0", 1, 60) + lives("web-1", 1, 240 if goes_on else 64)
    for begin, end in pairwise([0, 60, 70, 90, 100, 135, 150, 180, 240]):
        events = [e for e in every if T0 + begin * MINUTE < e["window_end"] <= T0 + end * MINUTE]
        others = [said(f"other-{end}", end - 1)] if end >= 70 else []
        shard.take([*events, *others, *([said("web-0", 91)] if end == arrives else [])], end)
    mine = pl.concat(shard.verdicts).filter(pl.col("entity") == "web-0", pl.col("metric") == "_machine")
    assert mine.filter(pl.col("incident_state") == "closed").height == 1
    assert shard.believed["web-0", "_machine"]["incident_state"] == "closed"


def test_one_machine_may_be_said_to_have_been_ended_at_many_times() -> None:
    ends, began = ControlMessages(ShardState(DictSegments())).ends, time.process_time()
    many = [said("web-0", number, at=T0 + number) for number in range(20_000)]
    for part in range(0, 20_000, 400):
        ends.take(pl.DataFrame(many[part : part + 400]), T0 + part + 400)
    assert time.process_time() - began < 8
    assert sum(map(len, ends.ended.values())) == 5_000, "of an hour"


@pytest.mark.parametrize("kind", ["ended", "ending"])
@pytest.mark.parametrize("ahead", [True, False], ids=["all at once", "as they come"])
def test_ends_that_are_read_long_before_their_time_hide_none_that_are_due_now(ahead: bool, kind: ChangeKind) -> None:
    """A replay reads the changes of months before the first window; each hour has 4,000 of them."""
    others = [said(f"other-{n}", 61 + n // 66, kind) for n in range(0, 12_000)]
    shard = Shard(MINUTE)
    for begin, end in pairwise([0, 59, 80, 120, 250]):
        events = [
            e for e in [*alone(), said("web-0", 60, kind)] if T0 + begin * MINUTE < e["window_end"] <= T0 + end * MINUTE
        ]
        came = [e for e in others if T0 + begin * MINUTE < e["window_end"] <= T0 + end * MINUTE]
        shard.take(events + ((others if begin == 0 else []) if ahead else came), end)
    assert absent(shard) == {("web-1", 121)}


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_which_ends_are_known_at_a_watermark_depends_on_their_times_alone(data: st.DataObject) -> None:
    """Of three that are kept of an hour: as they come, each at its time, and all at once in any order."""
    minutes = data.draw(st.lists(st.tuples(st.integers(0, 400), st.sampled_from("abcdef")), max_size=40))
    changes = [said(name, minute, data.draw(st.sampled_from(["ended", "ending"]))) for minute, name in minutes]
    cuts = sorted(data.draw(st.sets(st.integers(0, 400), max_size=6)) | {400})

    def known(batches: list[list[Event]]) -> list[Any]:
        segments, found = DictSegments(), []
        for batch, cut in zip(batches, cuts, strict=True):
            state = ShardState(segments)
            control = ControlMessages(state)
            news = pl.DataFrame(batch, {name: COLUMNS[name] for name in ("rule", "label", "change")})
            control.take(news, T0, T0, T0 + cut * MINUTE)
            control.save(T0)
            state.save()
            found.append((control.ends.ended, control.ends.ending))
        return found

    as_they_come = []
    for before, cut in pairwise([-1, *cuts]):
        ends = range(T0 + (before + 1) * MINUTE, T0 + cut * MINUTE + 1)
        as_they_come.append([change for change in changes if change["window_end"] in ends])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(said_ends, "_MOST", 3)
        wanted = known(as_they_come)
        assert known([data.draw(st.permutations(changes)), *([[]] * (len(cuts) - 1))]) == wanted
    for own in wanted[-1]:
        hours = Counter(at // (60 * MINUTE) for times in own.values() for at in times)
        assert max(hours.values(), default=0) <= 3


@pytest.mark.parametrize(
    ("minute", "is_told"), [(-1, True), (0, False), (50, False), (60, False), (61, False), (62, True)]
)
def test_a_machine_that_was_told_to_end_is_not_absent_if_it_still_lived_then(minute: int, is_told: bool) -> None:
    """Its last window ends at minute 60, the next one should have come at 61; it may take an hour to end."""
    shard = run([*alone(), said("web-0", minute, "ending")], [58, 62, 80, 120], MINUTE)
    assert absent(shard) == ({("web-0", 61)} if is_told else set())


@pytest.mark.parametrize(("ending", "is_told"), [(60, False), (64, True)], ids=["planned", "dead before"])
@pytest.mark.parametrize("arrives", [50, 61, 70, 90], ids=lambda minute: f"heard at {minute}")
def test_when_it_is_heard_that_a_machine_was_told_to_end_makes_no_difference(
    arrives: int, ending: int, is_told: bool
) -> None:
    shard = Shard(MINUTE)
    for begin, end in ((0, 50), (50, 61), (61, 70), (70, 90), (90, 120)):
        events = [e for e in alone() if T0 + begin * MINUTE < e["window_end"] <= T0 + end * MINUTE]
        shard.take([*events, *([said("web-0", ending, "ending")] if end == arrives else [])], end)
    last = shard.last_verdicts().filter(pl.col("entity") == "web-0", pl.col("metric") == "_machine").tail(1)
    assert (last["kind"].to_list() == ["absence"]) == is_told


@pytest.mark.parametrize("name", ["shop/report-29384700-q8d7f", "shop/report-29384700-3-q8d7f"])
@pytest.mark.parametrize(("job", "is_told"), [("shop/report-29384700", False), ("shop/report", True)])
def test_a_job_that_is_complete_has_ended_its_pods(name: str, job: str, is_told: bool) -> None:
    events = [*lives(name, 1, 60), *lives("web-1", 1, 120), said(job, 61)]
    assert absent(run(events, [58, 62, 80, 120], MINUTE)) == ({(name, 61)} if is_told else set())


@pytest.mark.parametrize("cuts", [[300], [120, 200, 300]], ids=["at once", "as it comes"])
def test_a_pod_that_keeps_its_name_may_be_ended_again_and_again(cuts: list[int]) -> None:
    """A replay takes all changes at once: the last one does not hide those before it."""
    events = [*lives("db-0", 1, 60), *lives("db-0", 90, 180), *lives("web-1", 1, 300)]
    assert absent(run([*events, said("db-0", 60), said("db-0", 180)], cuts, MINUTE)) == set()


@settings(max_examples=4, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_what_has_ended_depends_neither_on_micro_batches_nor_on_when_windows_come(data: st.DataObject) -> None:
    events: list[Event] = []
    for number in range(data.draw(st.integers(3, 6))):
        first = data.draw(st.sampled_from([1, 1, 1, 30, 45]))
        last = data.draw(st.sampled_from([90, 90, 44, 46, 60]))
        metrics = data.draw(st.sampled_from([("cpu",), ("cpu", "mem")]))
        events += lives(pod(number), first, last, metrics, data.draw(st.sampled_from([0, 0, 3])))
        if last < 60 and data.draw(st.booleans()):
            events += lives(pod(number), last + data.draw(st.sampled_from([4, 9, 25])), 90, metrics)
    once = run(events, [90], MINUTE)
    cuts = sorted(data.draw(st.sets(st.integers(1, 89), max_size=8)))
    many = run(events, [*cuts, 90], MINUTE)
    assert absent(many) == absent(once)
    assert_frame_equal(many.last_verdicts(), once.last_verdicts(), check_exact=True)
    said: dict[Any, Any] = once.believed
    assert many.believed.keys() == said.keys()
    assert {k: (b["kind"], b["incident_state"]) for k, b in many.believed.items()} == {
        k: (b["kind"], b["incident_state"]) for k, b in said.items()
    }


def test_late_windows_of_the_others_count_as_if_they_had_come_on_time() -> None:
    events = replaced()
    late = Shard(MINUTE)
    for before, minute in pairwise([0, *range(54, 72), 120]):
        begin, end = T0 + before * MINUTE, T0 + minute * MINUTE
        mine = [e for e in events if begin < e["window_end"] <= end and not _is_late(e)]
        mine += [e for e in events if begin < e["window_end"] + MINUTE <= end and _is_late(e)]
        late.take(mine, minute)
    assert absent(late) == absent(run(events, [120], MINUTE)) == set()


def _is_late(event: Event) -> bool:
    """Two windows of two pods come a minute late, before the absence is decided."""
    minute = (event["window_end"] - T0) // MINUTE
    return event["entity"] in (pod(1), pod(2)) and minute in (56, 58)


def test_many_globs_of_what_was_ended_cost_little_when_a_whole_site_falls_silent() -> None:
    """Whoever may send changes may send globs, and each machine that is absent is asked for each of them."""
    control = ControlMessages(ShardState(DictSegments()))
    control.ends.ended = {f"shop/cart{number}-*x?": [T0] for number in range(2_000)}
    names, began = [f"shop/cart{number * 40}-{number % 2}xy" for number in range(100)], time.process_time()
    assert [name for name in names if control.ends.of(name, T0, T0 + 1, 0)] == names[:50]
    assert time.process_time() - began < 4
