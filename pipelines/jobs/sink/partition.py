"""Decides which index holds a document: a pure function of its event time and one constant, never of the clock.

A document must go to the same index whenever it is written; otherwise, writing it again would store it twice. Live data
go to daily indices. Months of recorded data would make hundreds of tiny daily indices, so event times before
`daily_from` go to monthly indices. `daily_from` is chosen once, when the index template is first created, and stored in
the `_meta` of the template.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from functools import cache

_FIRST, _LAST = 0, 4_102_444_800_000
"""1970 to 2100: other times come from a wrong clock, and would create useless indices."""
NEVER = _LAST
"""The first instant with daily indices where there are none."""
_DAY_MS = 86_400_000


def default_daily_from(now_ms: int) -> int:
    """The first instant of the month before the month of ``now_ms``; both in epoch milliseconds.

    >>> from engine.spec.duration import iso
    >>> iso(default_daily_from(1_700_000_000_000))
    '2023-10-01T00:00:00.000Z'
    """
    month = datetime.fromtimestamp(now_ms / 1000, UTC).replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    previous = (
        month.replace(year=month.year - 1, month=12) if month.month == 1 else month.replace(month=month.month - 1)
    )
    return int(previous.timestamp() * 1000)


@cache
def _date(day: int, daily: bool) -> str:
    """A day, counted from 1970, as the last part of an index name."""
    form = "%Y.%m.%d" if daily else "%Y.%m"
    return datetime.fromtimestamp(day * _DAY_MS / 1000, UTC).strftime(form)


@dataclass(frozen=True)
class Partition:
    """The indices with one base name.

    Args:
        base: First part of the indices' names.
        daily_from: Event time from which on indices are daily, epoch milliseconds; before, they are monthly.

    >>> Partition("novelties", daily_from=1_700_000_000_000).index(1_700_000_000_000)
    'novelties-2023.11.14'
    >>> Partition("novelties", daily_from=1_700_000_000_000).index(1_404_172_800_000)
    'novelties-2014.07'
    """

    base: str
    daily_from: int

    def index(self, time_ms: int) -> str | None:
        """Name of the index for an event time (epoch milliseconds); ``None`` before 1970 and from 2100 on."""
        if not _FIRST <= time_ms < _LAST:
            return None
        return f"{self.base}-{_date(time_ms // _DAY_MS, time_ms >= self.daily_from)}"

    def holds(self, index: str) -> bool:
        """Whether an index is one of these, by its name."""
        return any(fnmatchcase(index, pattern) for pattern in self.patterns)

    @property
    def patterns(self) -> list[str]:
        """Patterns that match these indices, but not those of another version (`novelties-v2-2026.11.21`)."""
        return [f"{self.base}-1*", f"{self.base}-2*"]
