"""When the jobs start that leave the processor to the others first."""

from __future__ import annotations

from typing import Any

import pytest

from pipelines.runtime.running_job import PATIENCE_SECONDS, LaterJobs, RunningJob

QUERY: Any = object()


def _run(worked: bool, query: Any = QUERY) -> RunningJob:
    return RunningJob(query=query, worked=worked)


@pytest.mark.parametrize(
    ("others", "due"),
    [
        ([], True),
        ([_run(True), _run(True)], True),
        ([_run(True), _run(False)], False),
        ([_run(True), _run(False, None)], True),  # it has ended already, as in a run with an end
    ],
)
def test_they_start_when_each_of_the_others_works(others: list[RunningJob], due: bool) -> None:
    assert LaterJobs(["logs"], now=100.0).due(others, 101.0) is due


def test_a_job_that_cannot_begin_keeps_them_waiting_for_twenty_five_seconds_and_no_longer() -> None:
    later = LaterJobs(["logs"], now=100.0)
    assert PATIENCE_SECONDS == 25
    assert not later.due([_run(False)], 124.9)
    assert later.due([_run(False)], 125.0)


def test_a_job_that_has_ended_before_it_began_is_not_started() -> None:
    later = LaterJobs(["logs", "incidents"])
    later.drop("logs")
    later.drop("extractor")
    assert later.names == ["incidents"]


def test_a_job_that_is_held_starts_when_it_is_released_and_at_once() -> None:
    later = LaterJobs(["logs", "incidents"], now=100.0, held=["incidents"])
    assert later.names == ["logs"]
    later.drop("logs")
    later.release("incidents")
    later.release("detector")
    assert later.names == ["incidents"]
    assert later.due([_run(False)], 101.0)
    assert later.held == set()
