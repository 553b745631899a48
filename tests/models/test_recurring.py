"""What comes at the same time again and again alarms at most three times."""

from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from models.config import DetectorConfig
from models.detector import Detector
from models.evidence.recurring import day_of_month
from models.verdicts import Kind


def _day(year: int, month: int, day: int) -> datetime:
    return datetime(year, month, day, tzinfo=UTC)


START = _day(2026, 1, 5)  # a Monday
MINUTES = 5
OF_A_DAY = 1440 // MINUTES


def _alarms(jobs: list[datetime], days: int, size: float = 40.0, seed: int = 0) -> list[datetime]:
    """When anomalies begin in a series with jobs of half an hour; a day of noise comes first."""
    values = np.random.default_rng(seed).normal(50, 2, days * OF_A_DAY)
    for job in jobs:
        first = int((job - START) / timedelta(minutes=MINUTES))
        values[first : first + 6] += size
    time = (int(START.timestamp()) + np.arange(len(values)) * 60 * MINUTES) * 1000
    detector = Detector(DetectorConfig())
    verdicts = detector.step(detector.new_state(1), np.zeros(len(values), np.int64), time.astype(np.int64), values)
    unusual = np.flatnonzero(verdicts.kind == Kind.ANOMALY.code)
    begins = unusual[np.diff(unusual, prepend=-1000) > 36]
    return [START + timedelta(minutes=MINUTES * int(row)) for row in begins]


def _near(alarms: list[datetime], jobs: list[datetime]) -> list[int]:
    """Which of the jobs an alarm begins in."""
    return [i for i, job in enumerate(jobs) if any(job <= alarm < job + timedelta(hours=1) for alarm in alarms)]


def test_a_job_of_each_sunday_alarms_at_most_three_times() -> None:
    jobs = [START + timedelta(days=6 + 7 * week, hours=2) for week in range(8)]
    told = _near(_alarms(jobs, 60), jobs)
    assert told
    assert max(told) <= 2


def test_a_job_of_each_night_alarms_at_most_three_times() -> None:
    jobs = [START + timedelta(days=2 + night, hours=2) for night in range(14)]
    told = _near(_alarms(jobs, 17), jobs)
    assert told
    assert max(told) <= 2


LATE = (0, 45, 20, 60, 10, 35, 55, 5, 40, 25, 60, 15, 50, 30)
"""Minutes by which a job begins late, night by night, as it waits for another one."""


def test_a_job_of_each_night_that_begins_within_an_hour_alarms_at_most_three_times() -> None:
    jobs = [START + timedelta(days=2 + night, hours=2, minutes=LATE[night]) for night in range(14)]
    told = _near(_alarms(jobs, 17), jobs)
    assert told == [0, 1, 2]


def test_what_comes_at_about_the_same_time_on_three_days_by_chance_is_told_each_time() -> None:
    """A fourth day would make it a job; within ten minutes, a third."""
    jobs = [START + timedelta(days=2 + night, hours=2, minutes=LATE[night]) for night in range(3)]
    assert _near(_alarms(jobs, 6), jobs) == [0, 1, 2]


def test_the_accounts_of_a_month_s_end_alarm_at_most_three_times() -> None:
    ends = [_day(2026, month, day) for month, day in ((1, 31), (2, 28), (3, 31), (4, 30), (5, 31))]
    jobs = [end + timedelta(hours=20) for end in ends]
    told = _near(_alarms(jobs, 150), jobs)
    assert told
    assert max(told) <= 2


def test_what_is_twice_as_large_as_the_job_is_told_at_its_time() -> None:
    jobs = [START + timedelta(days=6 + 7 * week, hours=2) for week in range(6)]
    values = _alarms([*jobs, jobs[-1], jobs[-1]], 60)
    assert 5 in _near(values, jobs), "three times the usual size at the sixth time"


def test_the_same_at_another_time_is_told() -> None:
    jobs = [START + timedelta(days=6 + 7 * week, hours=2) for week in range(5)]
    other = START + timedelta(days=38, hours=14)
    assert _near(_alarms([*jobs, other], 60), [other]) == [0]


@pytest.mark.parametrize("day", [_day(1970, 1, 1), _day(2000, 2, 29), _day(2100, 2, 28), _day(2026, 12, 31)])
def test_days_of_months_are_those_of_the_calendar(day: datetime) -> None:
    for number in range(400):
        at = day + timedelta(days=number)
        _, of_month, last = day_of_month((at - _day(1970, 1, 1)).days)
        assert (of_month, last) == (at.day, (at + timedelta(days=1)).day == 1)
