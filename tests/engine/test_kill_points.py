"""Killed or restored anywhere, on any partitions, in any batches and shards: the same results, and nothing lost."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.aggregates import Count
from engine.operators import CountWindows, Logic, Process, Turn
from engine.reference import Arrival, interpret
from engine.spec.job import Job
from engine.stream import Stream
from engine.testing import ABORT, RESTART, Batch, Run, TestStream, run
from engine.windows import Sliding, Tumbling
from tests.engine import test_windows_match_reference as aligned
from tests.engine.operators.conftest import (
    T0,
    any_batches,
    arrivals,
    ends,
    job_of,
    points,
    rows_of,
    shuffled_batches,
    some_examples,
)
from tests.engine.operators.test_operators_match_reference import JOBS

Entries = Sequence[Any]
few = settings(some_examples, max_examples=4)


@st.composite
def crashes(draw: st.DrawFn, batches: Sequence[Entries], topics: Sequence[str]) -> TestStream:
    """The same micro-batches, each maybe killed ahead of its commit or followed by a restart."""
    then = st.sampled_from([None, None, ABORT, RESTART])
    made = tuple(Batch(tuple(batch), draw(then)) for batch in batches)
    return TestStream(T0, tuple(topics), partitions=2, batches=made)


@st.composite
def moved(draw: st.DrawFn, batches: Sequence[Entries]) -> list[Entries]:
    """The same records on other partitions."""
    elsewhere = st.integers(0, 1)
    return [[replace(e, partition=draw(elsewhere)) if isinstance(e, Arrival) else e for e in b] for b in batches]


class Forward(Logic):
    """Passes each record on."""

    def on_records(self, turn: Turn) -> None:
        turn.forward()


@pytest.mark.parametrize("name", JOBS)
@few
@given(data=st.data(), shards=st.integers(1, 3))
def test_operators_give_the_same_wherever_they_are_killed(name: str, data: st.DataObject, shards: int) -> None:
    topics, job = JOBS[name]
    shuffled, at_once = data.draw(shuffled_batches(topics, bound=4000))
    stream = data.draw(crashes(data.draw(moved(shuffled)), topics))
    got, wanted = run(job("4s"), stream, "operator", shards), interpret(job("4s"), at_once)
    assert rows_of(got.rows) == rows_of(wanted.rows)
    assert got.late == []


@pytest.mark.parametrize("name", JOBS)
@few
@given(data=st.data(), shards=st.integers(1, 3))
def test_a_crash_changes_neither_results_nor_what_is_late(name: str, data: st.DataObject, shards: int) -> None:
    topics, made = JOBS[name]
    batches, job = data.draw(any_batches(topics)), made("0s")
    got, wanted = run(job, data.draw(crashes(batches, topics)), "operator", shards), interpret(job, batches)
    assert rows_of(got.rows) == rows_of(wanted.rows)
    late = tuple(job.late.record.model_fields) if job.late else ()
    assert rows_of(got.late, late) == rows_of(wanted.late, late)
    assert got.watermarks == wanted.watermarks


def counted(rows: Run) -> int:
    return sum(row["n"] for row in rows.rows)


KEEPING: dict[str, tuple[Callable[[Stream], Stream], Callable[[Run], int]]] = {
    "process": (lambda s: s.process(Process(Forward())), lambda r: len(r.rows)),
    "count windows": (lambda s: s.window(CountWindows(3, timeout="9s")).aggregate(n=Count()), counted),
    "windows": (lambda s: s.window(Tumbling("5s")).aggregate(n=Count()), counted),
}


@pytest.mark.parametrize("name", KEEPING)
@some_examples
@given(data=st.data(), shards=st.integers(1, 3))
def test_what_has_no_result_is_in_the_late_topic(name: str, data: st.DataObject, shards: int) -> None:
    operator, inside = KEEPING[name]
    job: Job = job_of(operator(Stream.read(points("l")).key_by("key")))
    batches = data.draw(any_batches(("l",)))
    got = run(job, data.draw(crashes(batches, ("l",))), "operator", shards)
    assert inside(got) + len(got.late) == sum(isinstance(e, Arrival) for batch in batches for e in batch)
    assert got.dead == []


@pytest.mark.parametrize("window", [Tumbling("10s"), Sliding("20s", every="5s")], ids=["tumbling", "sliding"])
@some_examples
@given(data=st.data(), shards=st.sampled_from([1, 2, 4]))
def test_shared_slices_give_the_same_wherever_the_job_is_killed(
    window: Sliding, data: st.DataObject, shards: int
) -> None:
    job = aligned.extractor(window, lateness="2m")
    batches = data.draw(aligned.batches())
    stream = data.draw(crashes(batches, (aligned.TOPIC,)))
    got = aligned.final(run(job, stream, "operator", shards).rows)
    wanted = aligned.final(interpret(job, aligned.in_one_batch(batches)).rows)
    assert got.keys() == wanted.keys()
    for name, row in got.items():
        aligned.assert_same(row, wanted[name], revision=False)


@some_examples
@given(data=st.data(), shards=st.integers(1, 3))
def test_partitions_do_not_matter(data: st.DataObject, shards: int) -> None:
    """Of one input, in one order, spread over the partitions in two ways."""
    job = JOBS["pattern"][1]("40s")
    found = data.draw(arrivals(("l",)))
    one, two = (data.draw(crashes([*data.draw(moved([found])), ends(("l",))], ("l",))) for _ in range(2))
    assert rows_of(run(job, one, "operator", shards).rows) == rows_of(run(job, two, "operator", 1).rows)
