"""Random sites of days: whatever the micro-batches, crashes and restores, what counts in the end is the same.

Nothing is computed here as the job does it. The expectation is the job itself, which reads the whole log in one
micro-batch, so that it forgets nothing before the end; it is compared with runs that read the log in pieces, are put
back to a copy of their state in between, or begin again without any. What counts is decided as by Elasticsearch
(`external_gte`): a message replaces one of the same or a lower revision.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.contracts.records import Incident
from pipelines.contracts.settings import load
from tests.pipelines.incidents.cases import MINUTE, STEP, T0, Feed, news, parsed

SETTINGS = load(
    **{
        **{"incidents.quiet": "1m", "incidents.reopen": "1m", "incidents.related": "1m", "incidents.together": "20s"},
        **{"incidents.longest": "40m", "window.allowed_lateness": "1m"},
    }
)
"""All times are a fifth of what they are by default, and an incident lasts 40 minutes at most instead of a day.

So what comes and goes is held for 2 to 12 minutes, and six hours of log have what a site has in nine days.
"""
END = 6 * 60 * MINUTE
TICK = 5 * MINUTE


class Flapping(NamedTuple):
    """A series that is novel again and again.

    Attributes:
        entity: The machine.
        metric: The metric.
        start: When it begins, in steps after `T0`.
        lengths: How long it is novel each time, and then quiet, in steps.
        scores: The scores, one after the other.
        late: How many steps after the end of its window a correction takes each first verdict back; 0: none.
        closes: False if the last time has no end.
    """

    entity: str
    metric: str
    start: int
    lengths: list[tuple[int, int]]
    score: float
    late: int
    closes: bool


flapping = st.builds(
    Flapping,
    st.sampled_from("abcdef"),
    st.sampled_from(["cpu", "mem", "net"]),
    st.integers(0, 600),
    st.lists(
        st.tuples(st.integers(1, 30), st.sampled_from([1, 5, 7, 11, 12, 13, 24, 30, 48, 60, 72, 73, 150])),
        min_size=1,
        max_size=20,
    ),
    st.sampled_from([45.0, 60.0, 90.0]),
    st.sampled_from([0, 0, 1, 5]),
    st.booleans(),
)
places = st.lists(
    st.tuples(
        st.sampled_from("abcdef"), st.sampled_from(["g", "h", "a", None]), st.sampled_from([None, "h", "b"]),
        st.lists(st.sampled_from("abcdef"), max_size=2, unique=True), st.integers(0, END // STEP),
    ),
    max_size=5, unique_by=lambda p: p[0],
)  # fmt: skip
cuts = st.lists(st.integers(1, END // TICK - 1), max_size=12, unique=True).map(sorted)


class Sent(NamedTuple):
    """A verdict and the watermark, milliseconds after `T0`, from which on the log has it."""

    at: int
    row: dict[str, Any]


def log_of(site: Iterable[Flapping]) -> list[Sent]:
    """The verdicts of a site, each in the log when the watermark reaches the end of its window, corrections later."""
    found = []
    for series in site:
        at = series.start
        for n, (novel, quiet) in enumerate(series.lengths):
            if (at + novel + 1) * STEP > END - 2 * TICK:
                break
            row = news(series.entity, series.metric, at * STEP, record_score=series.score)
            found.append(Sent((at + 1) * STEP, row))
            if series.late and n % 3 == 1:
                back = row | {
                    "kind": "normal",
                    "since": None,
                    "incident_state": None,
                    "revision": 1,
                    "record_score": 1.0,
                }
                found.append(Sent((at + 1 + series.late) * STEP, back))
            if series.closes or n + 1 < len(series.lengths):
                last = {"since": T0 + at * STEP, "record_score": 5.0, "incident_state": "closed"}
                found.append(
                    Sent(
                        (at + novel + 1) * STEP,
                        news(series.entity, series.metric, (at + novel) * STEP, "recovered", **last),
                    )
                )
            at += novel + quiet
    return sorted(found, key=lambda sent: sent.at)


def run(feed: Feed, log: Sequence[Sent], ends: Iterable[int], begin: int = 0) -> None:
    """Reads the log from a watermark on, in micro-batches that end at some watermarks (milliseconds after `T0`)."""
    for end in ends:
        feed.send([sent.row for sent in log if begin < sent.at <= end], end)
        begin = end


def feed_of(placed: Iterable[tuple[str, str | None, str | None, list[str], int]], shards: int = 1) -> Feed:
    """A site of which people say every second place, and telemetry tells the others; c and d are replicas of w."""
    feed = Feed(shards, SETTINGS)
    with feed.at_once():
        for n, (entity, parent, moved_from, calls, at) in enumerate(placed):
            others = ["w" if each == "f" else each for each in calls if each != entity]
            gone = moved_from if moved_from not in (entity, parent) else None
            on = parent if parent != entity else None
            if n % 2:
                more = {"moved_from": gone, "depends_on": others, "workload": "w" if entity in "cd" else None}
                feed.infer(entity, on, at * STEP, **more)
            else:
                feed.place(entity, on, gone, at * STEP, others)
    return feed


def counting(feeds: Iterable[Feed]) -> dict[str, Incident]:
    """The documents in the end, without those that are parts of others or were taken back."""
    kept: dict[str, Incident] = {}
    for feed in feeds:
        for each in map(parsed, feed.run.rows):
            if each.id not in kept or kept[each.id].revision <= each.revision:
                kept[each.id] = each
    left = {name: each.model_copy(update={"revision": 0}) for name, each in kept.items() if each.status != "merged"}
    return {name: each for name, each in left.items() if each.message != "its novelties were taken back"}


def unlike(found: dict[str, Incident], expected: dict[str, Incident]) -> str:
    """The first incidents that differ, as text; empty if none do."""
    names = sorted(name for name in found.keys() | expected.keys() if found.get(name) != expected.get(name))
    shown = [
        (each.to_json().decode() if (each := some.get(name)) else "none")
        for name in names[:2]
        for some in (found, expected)
    ]
    return "\n".join(shown)


@settings(max_examples=25, deadline=None)
@given(st.lists(flapping, min_size=1, max_size=8, unique_by=lambda s: (s.entity, s.metric)), places, cuts)
def test_a_site_whose_machines_come_and_go_for_hours_is_grouped_the_same_whatever_the_micro_batches(
    site: list[Flapping], placed: list[tuple[str, str | None, str | None, list[str], int]], some: list[int]
) -> None:
    log = log_of(site)
    once, often = feed_of(placed), feed_of(placed)
    run(once, log, [END])
    run(often, log, [*(n * TICK for n in some), END])
    wrong = unlike(counting([often]), counting([once]))
    assert not wrong, wrong


def test_a_service_that_comes_and_goes_for_longer_than_an_incident_may_is_grouped_the_same() -> None:
    """It comes again just before it is held to be over, which depends on how often it came: for a week of incidents."""
    gaps = [11, 23, 35, 47, 59, 70, 71] + [71, 65, 70] * 30
    log = log_of([Flapping("a", "cpu", 0, [(3, gap) for gap in gaps], 90.0, 0, closes=True)])
    once, often = feed_of([]), feed_of([])
    run(once, log, [END])
    run(often, log, range(TICK, END + 1, TICK))
    wrong = unlike(counting([often]), counting([once]))
    assert not wrong, wrong


@settings(max_examples=12, deadline=None)
@given(
    st.lists(flapping, min_size=1, max_size=6, unique_by=lambda s: (s.entity, s.metric)),
    *(places, cuts, cuts),
    st.integers(1, END // TICK - 2),
    st.integers(0, 12),
    st.booleans(),
)
def test_what_counts_after_a_crash_and_a_restore_is_what_one_run_over_the_whole_log_says(
    site: list[Flapping],
    placed: list[tuple[str, str | None, str | None, list[str], int]],
    some: list[int],
    others: list[int],
    saved: int,
    more: int,
    lost: bool,
) -> None:
    """The job is put back to its state at ``saved``, or begins without any, when it had read ``more`` ticks more."""
    log, gone = log_of(site), min(saved + more, END // TICK - 1)
    once, before, after = feed_of(placed), feed_of(placed), feed_of(placed)
    run(once, log, [END])
    run(before, log, [*(n * TICK for n in some if n < saved), saved * TICK])
    savepoint = copy.deepcopy(before.run.states)
    if gone > saved:
        run(before, log, [*(n * TICK for n in others if saved < n < gone), gone * TICK], saved * TICK)
    if not lost:
        after.run.states = savepoint
    begin = 0 if lost else saved
    run(after, log, [*(n * TICK for n in others if begin < n), END], begin * TICK)
    wrong = unlike(counting([before, after]), counting([once]))
    assert not wrong, wrong
