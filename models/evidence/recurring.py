"""Recurring windows: what comes at the same time of several days, weeks or months is expected.

A backup at night, a report on Sundays, the accounts of a month's end: each is unusual by its values and usual by its
time. The last windows of a series that were unusual are remembered with their wall-clock time and size. One that came
at the same time of day on two of the last four days, at about the same time on three of them, at the same time of the
week in two of the last three weeks, or on the same day of the month (or its last) in two of the last three months, is
not reported any more.
"""

from __future__ import annotations

import numpy as np

from models.kernels import kernel
from models.numbers.arrays import Columns
from models.records import Record

REMEMBERED = 12
"""Unusual windows of a series that are remembered."""

_MINUTE, _DAY, _WEEK = 60_000, 1440, 10_080
_NEVER = -(2**30)
_NEAR = 10.0
"""Minutes by which the times may differ, at least; windows differ by their own length, and half of it."""

_ABOUT = 75.0
"""Minutes by which they may differ on three days: a job that waits for another one does not begin on the minute."""

_CALM = 12
"""So many windows without anything unusual end a run of unusual ones."""

_LARGER = 2.0
"""What is more than so many times as large as before is news at any time."""

_DAYS, _WEEKS, _MONTHS, _TWICE, _THRICE = 4, 3, 3, 2, 3


def new_state(n: int) -> Columns:
    """The columns for n series of which nothing is known.

    ``when``: wall-clock minutes of the last unusual windows, the newest first; ``size``: how large they were; ``last``:
    the minute of the last window of the run; ``expected``: whether that run recurs.
    """
    times: Columns = {"when": np.full((n, REMEMBERED), _NEVER, np.int32), "last": np.full(n, _NEVER, np.int32)}
    return times | {"size": np.zeros((n, REMEMBERED), np.float32), "expected": np.zeros(n, np.bool_)}


@kernel
def day_of_month(day: int) -> tuple[int, int, bool]:
    """The month since 0000-03, the day in it, and whether it is its last; of days since 1970-01-01.

    Source: H. Hinnant, chrono-Compatible Low-Level Date Algorithms, civil_from_days.

    >>> [day_of_month(day)[1:] for day in (0, 58, 59, 789)]  # 1 January, 28 February, 1 March 1970; 29 February 1972
    [(1, False), (28, True), (1, False), (29, True)]
    """
    month, number = _civil(day)
    return month, number, _civil(day + 1)[1] == 1


@kernel
def _civil(day: int) -> tuple[int, int]:
    shifted = day + 719_468
    era = shifted // 146_097
    of_era = shifted - era * 146_097
    year = (of_era - of_era // 1460 + of_era // 36_524 - of_era // 146_096) // 365
    of_year = of_era - (365 * year + year // 4 - year // 100)
    month = (5 * of_year + 2) // 153
    return (year + era * 400) * 12 + month, of_year - (153 * month + 2) // 5 + 1


@kernel
def _goes_on(recurring: Record, now: int, clock: float) -> bool:
    return now - recurring.last <= _CALM * max(clock / _MINUTE, 1 / 6)


@kernel
def runs_on(recurring: Record, local: int, clock: float) -> bool:
    """Whether a window belongs to a run that is expected at its time, though it may not be unusual itself."""
    return bool(recurring.expected) and _goes_on(recurring, local // _MINUTE, clock)


@kernel
def is_expected(recurring: Record, local: int, clock: float, size: float) -> bool:
    """Whether an unusual window is one of those that recur.

    Args:
        recurring: The columns.
        local: Milliseconds on the wall clock, as if they were an epoch.
        clock: Usual milliseconds between two windows.
        size: How large it is, in any unit that stays the same.

    >>> from models.records import record_of
    >>> state, told = record_of(new_state(1)), []
    >>> for week in range(5):  # a job that runs on Sundays, at two
    ...     at = (week * 7 * 1440 + 120) * 60_000
    ...     told.append(not is_expected(state, at, 60_000.0, 5.0))
    ...     learn_recurring(state, at, 60_000.0, 5.0)
    >>> told
    [True, True, False, False, False]
    """
    now = local // _MINUTE
    if _goes_on(recurring, now, clock):
        return bool(recurring.expected)
    near = max(_NEAR, 1.5 * clock / _MINUTE)
    month, number, is_last = day_of_month(now // _DAY)
    days = weeks = months = nearly = on = 0
    for i in range(REMEMBERED):
        when = recurring.when[i]
        if when == _NEVER or size > _LARGER * recurring.size[i]:
            continue
        ago = now - when
        many = int(np.rint(ago / _DAY))
        off = abs(ago - many * _DAY)
        if many < 1 or off > max(near, _ABOUT):
            continue
        if many <= _DAYS and many != on:  # the newest come first, so that those of one day follow on one another
            nearly, on = nearly + 1, many
        if off > near:
            continue
        days += many <= _DAYS
        weeks += many % 7 == 0 and many <= 7 * _WEEKS
        then, same, was_last = day_of_month(when // _DAY)
        months += month - then <= _MONTHS and month > then and (number == same or (is_last and was_last))
    return days >= _TWICE or nearly >= _THRICE or weeks >= _TWICE or months >= _TWICE


@kernel
def learn_recurring(recurring: Record, local: int, clock: float, size: float) -> None:
    """Remembers an unusual window.

    Args:
        recurring: The columns; changed.
        local: See `is_expected`.
        clock: See `is_expected`.
        size: See `is_expected`.
    """
    now = local // _MINUTE
    if _goes_on(recurring, now, clock):
        recurring.size[0] = max(float(recurring.size[0]), size)
    else:
        recurring.expected = is_expected(recurring, local, clock, size)
        for i in range(REMEMBERED - 1, 0, -1):
            recurring.when[i], recurring.size[i] = recurring.when[i - 1], recurring.size[i - 1]
        recurring.when[0], recurring.size[0] = now, size
    recurring.last = now
