"""Windows and evictors in plain Python: in which windows a record lies, and which records of a window count."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from functools import singledispatch
from zoneinfo import ZoneInfo

from engine.spec.duration import END_OF_TIME, NEVER
from engine.spec.operator import Row
from engine.windows import Calendar, Evictor, Global, KeepLast, KeepRecent, Session, Sliding, Window

_LONGEST_DAYS = {"day": 3, "week": 9, "month": 33, "quarter": 95, "year": 368}
"""Upper bounds of the days of a calendar unit, with at least a day more on either side for time zones."""


@singledispatch
def spans_of(window: Window, time: int) -> list[tuple[int, int]]:
    """Start and end of the windows in which a record lies, in order.

    ``spans_of.register(...)`` adds a kind of window.
    """
    raise TypeError(f"no reference of {type(window).__name__}: spans_of.register(...)")


@spans_of.register
def _(window: Sliding, time: int) -> list[tuple[int, int]]:
    """Each window begins at a multiple of ``every`` plus the offset.

    >>> spans_of(Sliding("20s", every="10s", offset="3s"), 25_000)
    [(13000, 33000), (23000, 43000)]
    """
    size, every, offset = int(window.size), int(window.every), int(window.offset)
    start = (time - offset) // every * every + offset
    spans = []
    while start + size > time:
        spans.append((start, start + size))
        start -= every
    return spans[::-1]


@spans_of.register
def _(window: Session, time: int) -> list[tuple[int, int]]:
    return [(time, time + int(window.gap))]


@spans_of.register
def _(window: Global, time: int) -> list[tuple[int, int]]:
    return [(NEVER, END_OF_TIME)]


@spans_of.register
def _(window: Calendar, time: int) -> list[tuple[int, int]]:
    """From the last beginning of a period at or before the record to the first one after it.

    >>> start, end = spans_of(Calendar("day", "Europe/Stockholm"), 1_711_846_800_000)[0]
    >>> (end - start) // 3_600_000
    23
    """
    around = datetime.fromtimestamp(time / 1000, UTC).date()
    days = range(-_LONGEST_DAYS[window.unit], _LONGEST_DAYS[window.unit] + 1)
    firsts = [day for n in days if _is_first(window.unit, day := around + timedelta(days=n))]
    begins = [_begins(window, day) for day in firsts]
    return [(max(b for b in begins if b <= time), min(b for b in begins if b > time))]


def _is_first(unit: str, day: date) -> bool:
    if unit == "week":
        return day.isoweekday() == 1
    months = {"month": range(1, 13), "quarter": (1, 4, 7, 10), "year": (1,)}
    return unit == "day" or (day.day == 1 and day.month in months[unit])


def _begins(window: Calendar, day: date) -> int:
    """The instant at which the wall clock shows ``begins`` after midnight of a day, epoch milliseconds."""
    wall = datetime(day.year, day.month, day.day) + timedelta(milliseconds=int(window.begins))  # noqa: DTZ001
    return round(wall.replace(tzinfo=ZoneInfo(window.zone)).timestamp() * 1000)


def last_slot(window: Sliding, time: int) -> tuple[int, int]:
    """Start and end of the slice in which a time lies: the part of a window that the next one does not share."""
    start = spans_of(window, time)[-1][0]
    return start, start + int(window.every)


@singledispatch
def kept(evictor: Evictor, records: Sequence[Row], time: str) -> list[Row]:
    """The records of a window that count, from all in event-time order; ``kept.register(...)`` adds an evictor."""
    raise TypeError(f"no reference of {type(evictor).__name__}: kept.register(...)")


@kept.register
def _(evictor: KeepLast, records: Sequence[Row], time: str) -> list[Row]:
    return list(records[-evictor.n :])


@kept.register
def _(evictor: KeepRecent, records: Sequence[Row], time: str) -> list[Row]:
    newest = records[-1][time]
    return [record for record in records if newest - record[time] < int(evictor.span)]
