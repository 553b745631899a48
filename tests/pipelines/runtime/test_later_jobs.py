"""When the jobs start that leave the processor to the others first."""

from __future__ import annotations

from typing import Any

import pytest

from pipelines.runtime.later_jobs import PATIENCE_SECONDS, LaterJobs
from pipelines.runtime.running_job import RunningJob

QUERY: Any = object()


def _run(batch: int, query: Any = QUERY) -> RunningJob:
    return RunningJob(query=query, batch=batch)


@pytest.mark.parametrize(
    ("others", "due"),
    [
        ([], True),
        ([_run(0), _run(3)], True),
        ([_run(0), _run(-1)], False),
        ([_run(0), _run(-1, None)], True),  # it has ended already, as in a run with an end
    ],
)
def test_they_start_when_each_of_the_others_has_begun_its_work(others: list[RunningJob], due: bool) -> None:
    assert LaterJobs(["logs"], now=100.0).due(others, 101.0) is due


def test_a_job_that_cannot_begin_keeps_them_waiting_for_twenty_seconds_and_no_longer() -> None:
    later = LaterJobs(["logs"], now=100.0)
    assert PATIENCE_SECONDS == 20
    assert not later.due([_run(-1)], 119.9)
    assert later.due([_run(-1)], 120.0)


def test_a_job_that_has_ended_before_it_began_is_not_started() -> None:
    later = LaterJobs(["logs", "incidents"])
    later.drop("logs")
    later.drop("extractor")
    assert later.names == ["incidents"]
