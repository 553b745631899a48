"""Times of the week, such as ``mon-fri 08:00-18:00, sat``: days, hours, or both, on the clock of a time zone."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from typing import Annotated
from zoneinfo import ZoneInfo

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

    days: frozenset[int]
    begin: str
    end: str

    def holds(self, day: int, clock: str) -> bool:
        if self.begin < self.end:
            return day in self.days and self.begin <= clock < self.end
        return (day in self.days and clock >= self.begin) or ((day - 1) % 7 in self.days and clock < self.end)


@cache
def _spans(text: str) -> tuple[_Span, ...]:
    return tuple(_span(part.strip()) for part in text.split(",")) if text else ()


def _span(part: str) -> _Span:
    found = _PART.fullmatch(part)
    if not part or found is None or (found[3] and found[3] == found[4]):
        raise ValueError("not accepted")
    first = DAYS.index(found[1]) if found[1] else 0
    count = (DAYS.index(found[2] or found[1]) - first) % 7 + 1 if found[1] else 7
    days = frozenset((first + n) % 7 for n in range(count))
    return _Span(days, found[3] or "00:00", found[4] or "24:00")


def is_within(text: str, zone: str, instant: int) -> bool:
    """Whether an instant lies in times of the week.

    Args:
        text: The times, as of `WeekTimes`; empty: none.
        zone: IANA name of the time zone.
        instant: The instant, epoch milliseconds.

    >>> is_within("mon-fri 22:00-07:00", "Europe/Stockholm", 1767646800000)  # Monday, 22:00 there
    True
    """
    local = datetime.fromtimestamp(instant / 1000, UTC).astimezone(ZoneInfo(zone))
    return any(span.holds(local.weekday(), local.strftime("%H:%M")) for span in _spans(text))


def _times(text: str) -> str:
    _spans(text)
    return text


WeekTimes = Annotated[str, AfterValidator(_times)]
"""The type of a setting that holds times of the week; empty: none."""
