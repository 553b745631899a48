"""Times of log lines that name no zone or no year."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC as _UTC
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any
from zoneinfo import ZoneInfo

from engine.formats.instants import instant
from pipelines.contracts.settings.input import told_for
from pipelines.formats.instants import ACCEPTED, moment
from pipelines.formats.refusals import TIME_AHEAD, RefusedError

_HOUR = 3_600_000
_AHEAD = 14 * _HOUR
"""The greatest difference of zones; a time without a year that would lie further ahead is one of last year."""
_MOST_AHEAD = 10 * 60_000
"""A time without a zone that lies further ahead of its arrival is one of another zone: clocks are not that wrong."""
_ZONED = re.compile(r".*[0-9](?:Z|z|[+-][0-9]{2}(?::?[0-9]{2})?)|[0-9]+", re.DOTALL)
_NAMED_UTC = re.compile(r" ?(?:UTC|GMT)$")
_FORM = re.compile(
    r"(?:(?P<before>[0-9]{4}) )?(?P<month>[A-Z][a-z]{2}) +(?P<day>[0-9]{1,2})(?: (?P<year>[0-9]{4}))? "
    r"(?P<clock>[0-9]{2}:[0-9]{2}:[0-9]{2})(?:[.,](?P<part>[0-9]{1,9}))?"
    r"(?: (?P<zone>[A-Z]{1,4}))?(?: (?P<after>[0-9]{4}))?"
)
_ZONES = {
    "UTC": 0, "GMT": 0, "Z": 0, "WET": 0, "CET": 1, "WEST": 1, "CEST": 2, "EET": 2, "EEST": 3, "MSK": 3, "EST": -5,
    "EDT": -4, "CST": -6, "CDT": -5, "MST": -7, "MDT": -6, "PST": -8, "PDT": -7, "JST": 9,
}  # fmt: skip
"""Hours east of UTC of the zones that devices name."""


@dataclass(frozen=True)
class Zones:
    """The zones of times that name none.

    Args:
        timezone: See `InputSettings.timezone`.
        topic: The topic.
    """

    timezone: str = "UTC"
    topic: str = ""

    def moment(self, time: Any, machine: str, arrived: int) -> int:
        """Epoch milliseconds of a time.

        Args:
            time: A time as `pipelines.formats.instants.moment` or `local` reads it.
            machine: The machine, which may have a zone of its own.
            arrived: When the message arrived, epoch milliseconds.

        Raises:
            RefusedError: ``TIME_AHEAD``: it must be one of another zone.
            ValueError: If it is no time.
        """
        if type(time) is not str or _ZONED.fullmatch(time):
            return moment(time)
        plain = "=" not in self.timezone and "," not in self.timezone
        zone = self.timezone if plain else told_for(self.timezone, self.topic, machine) or "UTC"
        epoch = local(time, zone, arrived)
        if epoch > arrived + _MOST_AHEAD:
            late = round((epoch - arrived) / 60_000)
            why = f"{time!r} names no zone and is taken as {zone}; it would lie {late} minutes ahead of its arrival"
            raise RefusedError(TIME_AHEAD, f"{why}; input.timezone names the zone of {machine}'s clock")
        return epoch


UTC = Zones()
"""The zones of the default settings."""


def local(time: str, zone: str, arrived: int) -> int:
    """Epoch milliseconds of a time without an offset.

    Args:
        time: ISO 8601, or as BSD writes it, with or without a year, a part of the second, and a zone.
        zone: IANA name of the zone, unless the time names one.
        arrived: When the message arrived, epoch milliseconds.

    Raises:
        ValueError: If it is no time.

    >>> local("Nov 21 01:27:00", "Europe/Stockholm", 1795220900000), local("2026-11-21 01:27:00,5", "UTC", 0)
    (1795220820000, 1795224420500)
    """
    return until(time, zone, (arrived // _HOUR + 1) * _HOUR + _AHEAD)


@lru_cache(1 << 12)  # lines that come together often have the same time
def until(time: str, zone: str, latest: int) -> int:
    """The same; a time without a year is of the last one in which it is not later than an instant.

    Args:
        time: See `local`.
        zone: See `local`.
        latest: That instant, epoch milliseconds.

    Raises:
        ValueError: If it is no time.
    """
    match = _FORM.fullmatch(time)
    if match is None:
        try:
            when = datetime.fromisoformat(_NAMED_UTC.sub("Z", time))
        except ValueError:
            raise ValueError(f"{time[:60]!r} is no time; {ACCEPTED}") from None
        return _epoch(when if when.tzinfo else when.replace(tzinfo=ZoneInfo(zone)))
    year = match["before"] or match["year"] or match["after"]
    text = f"{match['month']} {match['day']} {match['clock']}.{(match['part'] or '0')[:6]}"
    offset = _ZONES.get(match["zone"] or "")

    def at(year: str | int) -> datetime:
        when = datetime.strptime(f"{year} {text} +0000", "%Y %b %d %H:%M:%S.%f %z")
        return when.replace(tzinfo=ZoneInfo(zone) if offset is None else _UTC) - timedelta(hours=offset or 0)

    if year:
        return _epoch(at(year))
    bound = datetime.fromtimestamp(latest / 1000, _UTC)
    for each in range(bound.year + 1, bound.year - 9, -1):  # the 29th of February is not in every year
        try:
            if (when := at(each)) <= bound:
                return _epoch(when)
        except ValueError:
            continue
    raise ValueError(f"{time!r} is no time")


def _epoch(when: datetime) -> int:
    return instant(when.isoformat())
