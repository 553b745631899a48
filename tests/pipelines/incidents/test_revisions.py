"""Which revision of an incident counts, where some were written twice: after a restore, or without the checkpoint.

The expectation is what one uninterrupted run over the same log writes last. What counts is decided here as by
Elasticsearch (`external_gte`): a message replaces one of the same or a lower revision.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.contracts.records import Incident
from pipelines.notify.memory import Memory
from tests.pipelines.incidents.cases import MINUTE, STEP, T0, Feed, episode, news, parsed

TICK = 120_000
"""So often the watermark advances in these logs, milliseconds."""

Spoken = tuple[int, str, bool]


def counting(messages: Iterable[dict[str, Any]]) -> dict[str, Incident]:
    """The document of each incident after all messages, as Elasticsearch keeps it; its revision is left out."""
    kept: dict[str, Incident] = {}
    for each in map(parsed, messages):
        if each.id not in kept or kept[each.id].revision <= each.revision:
            kept[each.id] = each
    return {name: each.model_copy(update={"revision": 0}) for name, each in kept.items()}


def live(feed: Feed, rows: Sequence[dict[str, Any]], said: Sequence[Spoken], batches: Iterable[Sequence[int]]) -> None:
    """Runs some micro-batches, each of some ticks of the log in order, with what operators said within them."""
    for ticks in batches:
        low, high = ticks[0] * TICK, (ticks[-1] + 1) * TICK
        with feed.at_once():
            feed.send([row for row in rows if low < row["window_end"] - T0 <= high], high)
            for at, name, active in said:
                if low <= at < high:
                    feed.acknowledge(name, at, active=active)


def batches(first: int, last: int, cuts: Iterable[int]) -> list[list[int]]:
    """The ticks from one up to another, in micro-batches that end at some of them."""
    ends = sorted({cut for cut in cuts if first < cut < last})
    return [list(group) for _, group in groupby(range(first, last), key=lambda n: sum(end <= n for end in ends))]


series = st.tuples(
    st.sampled_from("abcd"), st.sampled_from(["cpu", "mem"]), st.integers(0, 60), st.integers(1, 60)
)  # fmt: skip
ticks = st.lists(st.integers(1, 14), max_size=6)


@settings(max_examples=6, deadline=None)
@given(
    st.lists(series, min_size=1, max_size=8, unique_by=lambda s: (s[0], s[1])),
    *(ticks, ticks),
    st.integers(1, 13),
    st.integers(0, 8),
    st.lists(st.tuples(st.integers(0, 14), st.booleans()), max_size=4),
    st.booleans(),
)
def test_what_counts_after_a_restore_is_what_an_uninterrupted_run_wrote_last(
    found: list[tuple[str, str, int, int]], cuts: list[int], other: list[int], saved: int, more: int,
    spoken: list[tuple[int, bool]], lost: bool,
) -> None:  # fmt: skip
    rows = [row for e, m, at, size in found for row in episode(e, m, at * STEP, (at + size + 1) * STEP)]
    end, again = 15, min(saved + more, 14)
    first = Feed()
    live(first, rows, (), batches(0, end, ()))
    said = [
        (at * TICK + 1, name, active) for (at, active), name in zip(spoken, list(first.incidents) * 4, strict=False)
    ]
    once = Feed()
    live(once, rows, said, batches(0, end, range(end)))
    interrupted = Feed()
    live(interrupted, rows, said, batches(0, saved, cuts))
    savepoint = copy.deepcopy(interrupted.run.states)
    live(interrupted, rows, said, batches(saved, again, range(end)))
    restored, begin = Feed(), 0 if lost else saved
    if not lost:
        restored.run.states = savepoint
    live(restored, rows, said, batches(begin, end, other))
    merged = {name for name, each in counting(interrupted.run.rows).items() if each.status == "merged"}
    kept, expected = (counting(rows) for rows in (interrupted.run.rows + restored.run.rows, once.run.rows))
    standing = {name: each for name, each in kept.items() if each.status != "merged" and name not in merged}
    assert standing == {name: each for name, each in expected.items() if each.status != "merged"}


def test_an_incident_that_a_former_life_wrote_often_is_over_after_the_restore_for_all_who_read_it(
    tmp_path: Path,
) -> None:
    machines = [f"vm-{n}" for n in range(12)]
    first, again = Feed(), Feed()
    for feed in (first, again):
        feed.send([news(machines[0], "cpu", 0), news(machines[1], "cpu", STEP)], 2 * STEP)
    savepoint = copy.deepcopy(first.run.states)
    for n, name in enumerate(machines[2:], 2):
        first.send([news(name, "cpu", n * STEP), news(name, "mem", n * STEP)], (n + 1) * STEP)
    again.run.states = savepoint
    again.send([news(n, m, k * STEP) for k, n in enumerate(machines) for m in ("cpu", "mem")], 3 * MINUTE)
    ends = [episode(n, m, k * STEP, 4 * MINUTE)[1] for k, n in enumerate(machines) for m in ("cpu", "mem")]
    again.send(ends, 20 * MINUTE)
    topic = first.run.rows + again.run.rows
    assert {each.status for each in counting(topic).values() if each.status != "merged"} == {"resolved"}
    memory = Memory(tmp_path, ["channel"])
    memory.take("incidents", map(parsed, topic), {0: len(topic)}, 0)
    read = [each.incident for each in memory.incidents("incidents")[0]]
    known = [each.status for each in read if each.status != "merged"]
    assert known == ["resolved"]
    memory.close()


@pytest.mark.parametrize("count", [0, 11, 10_000])
def test_revisions_of_earlier_versions_which_were_counts_are_replaced(count: int) -> None:
    feed = Feed()
    (written,) = feed.send(episode("a", "cpu", 0, 2 * MINUTE), 2 * MINUTE)
    old = parsed(written).model_copy(update={"revision": count})
    (resolved,) = feed.send([], 8 * MINUTE)
    assert parsed(resolved).status == "resolved" and parsed(resolved).revision > old.revision


def test_two_changes_at_one_watermark_have_different_revisions() -> None:
    feed = Feed()
    feed.send([news("a", "cpu", 0)], MINUTE)
    (only,) = feed.standing
    for at, active in ((0, True), (1, False), (2, True)):
        feed.acknowledge(only.id, MINUTE + at, active=active)
    revisions = [parsed(row).revision for row in feed.run.rows]
    assert revisions == sorted(set(revisions)) and len(revisions) == 4
