"""Times of the week, such as ``mon-fri 08:00-18:00, sat``: days, hours, or both, on the clock of a time zone."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import Annotated

import numpy as np
import polars as pl
from numpy.typing import NDArray
from pydantic import AfterValidator

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
ACCEPTED = "times such as 22:00-07:00, mon-fri 08:00-18:00 or sat-sun, with commas between several"

_DAY = "|".join(DAYS)
_PART = re.compile(
    rf"(?:({_DAY})(?:-({_DAY}))?)?(?:(?:^|(?<=[a-z]) )((?:[01]\d|2[0-3]):[0-5]\d)-((?:[01]\d|2[0-3]):[0-5]\d))?"
)


@dataclass(frozen=True)
class _Span:
    """Some hours of some days. One that goes on after midnight belongs to the day on which it begins."""

    days: tuple[int, ...]
    begin: int
    end: int

    def holds(self, day: NDArray[np.int_], minute: NDArray[np.int_]) -> NDArray[np.bool_]:
        """Flags instants by their day of the week, from 0 for Monday, and minute of the day."""
        today, before = np.isin(day, self.days), np.isin((day - 1) % 7, self.days)
        if self.begin < self.end:
            return today & (self.begin <= minute) & (minute < self.end)
        return (today & (minute >= self.begin)) | (before & (minute < self.end))


@cache
def _spans(text: str) -> tuple[_Span, ...]:
    return tuple(_span(part.strip()) for part in text.split(",")) if text else ()


def _span(part: str) -> _Span:
    found = _PART.fullmatch(part)
    if not part or found is None or (found[3] and found[3] == found[4]):
        raise ValueError("not accepted")
    first = DAYS.index(found[1]) if found[1] else 0
    count = (DAYS.index(found[2] or found[1]) - first) % 7 + 1 if found[1] else 7
    days = tuple((first + n) % 7 for n in range(count))
    return _Span(days, _minute(found[3] or "00:00"), _minute(found[4] or "24:00"))


def _minute(clock: str) -> int:
    return int(clock[:2]) * 60 + int(clock[3:])


def is_within(text: str, zone: str, instant: int) -> bool:
    """Whether an instant lies in times of the week.

    Args:
        text: The times, as of `WeekTimes`; empty: none.
        zone: IANA name of the time zone.
        instant: The instant, epoch milliseconds.

    >>> is_within("mon-fri 22:00-07:00", "Europe/Stockholm", 1767646800000)  # Monday, 22:00 there
    True
    """
    return bool(are_within(text, zone, pl.Series([instant]))[0])


def are_within(text: str, zone: str, instants: pl.Series) -> NDArray[np.bool_]:
    """For each of some instants (epoch milliseconds) whether it lies in times of the week; arguments as `is_within`."""
    local = instants.cast(pl.Datetime("ms", "UTC")).dt.convert_time_zone(zone).dt
    day = local.weekday().to_numpy().astype(np.int64) - 1
    minute = local.hour().to_numpy().astype(np.int64) * 60 + local.minute().to_numpy()
    flags = np.zeros(len(instants), np.bool_)
    for span in _spans(text):
        flags |= span.holds(day, minute)
    return flags


def _times(text: str) -> str:
    _spans(text)
    return text


WeekTimes = Annotated[str, AfterValidator(_times)]
"""The type of a setting that holds times of the week; empty: none."""
