"""On how many days an hour was visited: of two or more one can say what is usual at that hour on such days.

A bit for each hour of working days and of Saturdays and Sundays: visited today, on a day before, on two.
"""

from __future__ import annotations

import numpy as np

from models.evidence.repeats import NEVER
from models.kernels import kernel
from models.numbers.arrays import Columns
from models.records import Record

_QUARTER, _HOUR, _DAY = 900_000, 3_600_000, 86_400_000
_BINS = 48


def new_state(n: int) -> Columns:
    """The columns for n series of which nothing is known."""
    columns: Columns = {name: np.zeros(n, np.int64) for name in ("today", "once", "twice")}
    return columns | {name: np.full(n, NEVER, np.int32) for name in ("quarter", "visit")}


@kernel
def _visit(local: int, weekend: bool) -> int:
    """A number for each hour: that of the day, and in it the place of the bit."""
    return local // _DAY * _BINS + local % _DAY // _HOUR + 24 * weekend


@kernel
def several_days(days: Record, local: int, weekend: bool) -> bool:
    """Whether the hour of an instant was visited on two such days before that day at least.

    Args:
        days: The columns.
        local: Milliseconds on the wall clock, as if they were an epoch.
        weekend: Whether the day counts as one of a weekend.

    >>> from models.records import record_of
    >>> days, told = record_of(new_state(1)), []
    >>> for day in (4, 5, 6):  # Monday to Wednesday
    ...     noon = day * 86_400_000 + 43_200_000
    ...     told.append(several_days(days, noon, False))
    ...     learn_days(days, noon, noon, False)
    >>> told
    [False, False, True]
    """
    visit = _visit(local, weekend)
    twice = days.twice
    if visit // _BINS != days.visit // _BINS:
        twice |= days.once & days.today
    return (twice >> visit % _BINS) & 1 > 0


@kernel
def learn_days(days: Record, time: int, local: int, weekend: bool) -> None:
    """Remembers the hour of an instant (epoch milliseconds). Of each quarter of an hour one will do."""
    if time // _QUARTER == days.quarter:
        return
    visit = _visit(local, weekend)
    if visit // _BINS != days.visit // _BINS:
        days.twice |= days.once & days.today
        days.once |= days.today
        days.today = 0
    days.today |= 1 << visit % _BINS
    days.visit, days.quarter = visit, time // _QUARTER
