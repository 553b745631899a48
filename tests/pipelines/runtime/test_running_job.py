"""When a job that completes no micro-batch is a problem."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any

from pipelines.runtime.running_job import RunningJob

QUERY: Any = SimpleNamespace(lastProgress=None, isActive=True)


def test_a_job_that_reads_nothing_for_more_than_a_minute_though_messages_wait_is_a_problem() -> None:
    job = RunningJob()
    job.started(QUERY, {"telemetry": {"0": 5}})
    begun = time.monotonic()
    job.look(begun + 1, 7)
    assert job.problem("extractor", begun + 59) == ""
    assert "7 messages wait" in job.problem("extractor", begun + 62)


def test_a_job_that_has_come_to_the_end_of_a_run_is_none_though_its_topics_grow() -> None:
    job = RunningJob()
    job.started(QUERY, {"telemetry": {"0": 5}})
    job.query = None  # as `Driver.finish` leaves it
    job.look(time.monotonic() + 100, 7)
    assert job.problem("extractor", time.monotonic() + 400) == ""
