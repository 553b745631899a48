"""When a job that failed starts again, and when it is given up."""

from __future__ import annotations

from pipelines.runtime.running_job import Restarts


def pauses(count: int, *, excused: bool) -> list[float]:
    """The pauses ahead of so many starts, none of which ends a micro-batch."""
    job, now, found = Restarts(), 0.0, []
    for _ in range(count):
        assert job.failed("the disk is full", now, excused)
        assert not job.due(job.at - 0.01)
        assert job.due(job.at)
        found.append(job.at - now)
        now = job.at
        job.started()
    return found


def test_pauses_double_up_to_half_a_minute() -> None:
    assert pauses(7, excused=False) == [1, 2, 4, 8, 16, 30, 30]


def test_a_job_is_given_up_at_its_ninth_failure_in_a_row() -> None:
    job = Restarts()
    for number in range(8):
        assert job.failed("the disk is full", float(number))
    assert not job.failed("the disk is full", 9.0)


def test_a_slow_start_or_an_absent_server_backs_off_too_but_is_never_given_up() -> None:
    assert pauses(20, excused=True)[-1] == 30


def test_a_micro_batch_that_ends_makes_past_failures_forgotten() -> None:
    job = Restarts()
    for _ in range(8):
        job.failed("the disk is full", 0.0)
    job.calm()
    assert not job.failed("the disk is full", 1.0), "a query that waits for its start has ended no micro-batch"
    job.started()
    job.calm()
    assert job.failed("the disk is full", 2.0)
    assert job.at == 3.0
