"""Calendar windows of a time zone; they are an hour longer or shorter where the zone changes its clocks."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from typing import Literal, get_args
from zoneinfo import ZoneInfo

import numpy as np

from engine.spec.duration import DurationField
from engine.spec.errors import NewnormalError
from engine.windows.window import Spans, Times, Window

Unit = Literal["day", "week", "month", "quarter", "year"]
_MONTHS = {"month": 1, "quarter": 3, "year": 12}
_DAY = timedelta(days=1)


@dataclass(frozen=True)
class Calendar(Window):
    """Days, weeks (from Monday), months, quarters or years of a time zone.

    A day begins when the clock first shows ``begins`` after midnight. If clocks skip that time, the day begins when
    they would have shown it without the change.

    Args:
        unit: Length of the windows: ``day``, ``week``, ``month``, ``quarter`` or ``year``.
        zone: Name of a time zone, such as ``Europe/Stockholm``.
        begins: Wall-clock time after midnight at which a window begins, e.g. ``6h`` for a shift.

    Raises:
        NewnormalError: ``WINDOW_INVALID`` for another unit, an unknown zone, or a beginning of a day or more.

    >>> day = Calendar("day", "Europe/Stockholm").spans(np.array([1_711_846_800_000]))
    >>> ((day.ends - day.starts) // 3_600_000).tolist()
    [23]
    """

    unit: Unit
    zone: str = "UTC"
    begins: DurationField = DurationField("window.begins", "0s")

    def __post_init__(self) -> None:
        if self.unit not in get_args(Unit):
            raise NewnormalError(
                "WINDOW_INVALID", f"no calendar unit: {self.unit!r}", "window", ", ".join(get_args(Unit))
            )
        try:
            ZoneInfo(self.zone)
        except (KeyError, ValueError, OSError) as error:
            raise NewnormalError(
                "WINDOW_INVALID", f"no time zone: {self.zone!r}", "window.zone", "a name such as Europe/Stockholm"
            ) from error
        if not 0 <= self.begins < 86_400_000:
            raise NewnormalError("WINDOW_INVALID", f"no time of day: {self.begins}", "window.begins", "0s to 24h")

    def spans(self, times: Times) -> Spans:
        """The window in which each record lies."""
        rows = np.arange(len(times))
        if not len(times):
            return Spans(rows, times, times)
        years = range(_date(int(times.min())).year - 1, _date(int(times.max())).year + 3)
        bounds = np.array([b for year in years for b in _bounds(self, year)], np.int64)
        at = np.searchsorted(bounds, times, side="right")
        return Spans(rows, bounds[at - 1], bounds[at])

    def first_day(self, day: date) -> date:
        """The first day of the period in which a day lies."""
        if self.unit == "day":
            return day
        if self.unit == "week":
            return day - day.weekday() * _DAY
        return date(day.year, day.month - (day.month - 1) % _MONTHS[self.unit], 1)

    def following(self, day: date) -> date:
        """The first day of the next period."""
        if self.unit in ("day", "week"):
            return day + (_DAY if self.unit == "day" else 7 * _DAY)
        months = day.year * 12 + day.month - 1 + _MONTHS[self.unit]
        return date(months // 12, months % 12 + 1, 1)

    def instant(self, day: date) -> int:
        """When a period begins, epoch milliseconds."""
        midnight = datetime(day.year, day.month, day.day, tzinfo=ZoneInfo(self.zone))
        local = midnight + timedelta(milliseconds=self.begins)  # wall-clock arithmetic
        return round(local.timestamp() * 1000)


def _date(ms: int) -> date:
    return datetime.fromtimestamp(ms / 1000, UTC).date()


@lru_cache(maxsize=1024)
def _bounds(window: Calendar, year: int) -> list[int]:
    """The beginnings of all periods of a year, epoch milliseconds."""
    day = window.first_day(date(year, 1, 1))
    day = day if day.year == year else window.following(day)
    instants = []
    while day.year == year:
        instants.append(window.instant(day))
        day = window.following(day)
    return instants
