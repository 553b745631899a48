"""Times in lines of logs, by the column: ISO 8601, epochs, those of web servers, and of BSD's syslog.

The latter have no year and no zone.
"""

from __future__ import annotations

import re
from contextlib import suppress
from datetime import datetime
from functools import lru_cache
from zoneinfo import ZoneInfo

import polars as pl

from engine.formats.instants import instant, instants
from pipelines.formats import syslog_times
from pipelines.formats.instants import moment

_DAY = 86_400_000
_BSD = r"^[A-Z][a-z]{2} "
_ZONED = r"(?:Z|[+-][0-9]{2}:?[0-9]{2})$"
_EPOCH = r"^[0-9]{9,19}(?:\.[0-9]*)?$"
_FORMS = ("%d/%b/%Y:%H:%M:%S %z", "%Y/%m/%d %H:%M:%S")
"""The time of an access, and that of nginx' error log."""
_WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


def of(stamps: pl.Series, arrived: pl.Series, zone: str) -> pl.Series:
    """Epoch milliseconds of times; null for what is no time.

    Args:
        stamps: The times as they stand there; null: the time of the arrival.
        arrived: When each arrived, epoch milliseconds.
        zone: The time zone of those that name none.

    >>> of(pl.Series(["Nov 21 00:27:00", "2026-11-21T00:27:00.5Z", "soon", None]), pl.Series([1795220900000] * 4),
    ...     "UTC").to_list()
    [1795220820000, 1795220820500, None, 1795220900000]
    """
    frame = pl.DataFrame({"stamp": stamps.cast(pl.String), "arrived": arrived.cast(pl.Int64)})
    stamp = pl.col("stamp")
    frame = frame.with_columns(bsd=stamp.str.contains(_BSD), zoned=stamp.str.contains(_ZONED))
    plain = ~pl.col("bsd") & ~stamp.str.contains(_EPOCH) & (pl.col("zoned") | pl.lit(zone == "UTC"))
    timed = frame.with_columns(time=pl.when(plain).then(instants(stamp)).cast(pl.Int64))
    timed = timed.with_columns(time=pl.when(stamp.is_null()).then("arrived").otherwise("time"))
    if timed["time"].null_count() == 0:
        return timed["time"]
    days = timed.with_columns(day=pl.col("arrived") // _DAY)
    rest = days.filter(pl.col("time").is_null()).select("stamp", "day").unique()
    others = [_one(text, day, zone) for text, day in rest.iter_rows()]
    rest = rest.with_columns(other=pl.Series(others, dtype=pl.Int64))
    joined = days.join(rest, on=("stamp", "day"), how="left", maintain_order="left")
    return joined.select(pl.coalesce("time", "other")).to_series()


@lru_cache(1 << 12)
def _one(text: str, day: int, zone: str) -> int | None:
    """Epoch milliseconds of a time; ``None`` if it is none.

    Args:
        text: The time.
        day: The day of its arrival, days since the epoch.
        zone: The time zone if it names none.
    """
    try:
        if text[:1].isalpha():
            return without_year(text, day * _DAY, zone)
        return moment(float(text) if "." in text else int(text)) if re.match(_EPOCH, text) else _dated(text, zone)
    except (ValueError, OverflowError):
        return None


def _dated(text: str, zone: str) -> int:
    when = None
    for form in _FORMS:
        with suppress(ValueError):
            when = datetime.strptime(text, form)  # noqa: DTZ007  its zone follows
    when = when or datetime.fromisoformat(text.replace(",", ".", 1))
    return instant((when if when.tzinfo else when.replace(tzinfo=ZoneInfo(zone))).isoformat())


def without_year(text: str, arrived: int, zone: str) -> int:
    """Epoch milliseconds of a time such as ``Nov 21 00:27:00``, in the last year in which it is not ahead.

    A time up to two days after the day of the arrival keeps its year: its clock or its zone is wrong, not its year.

    Args:
        text: The time; it may have parts of a second, and a year, as in ``Nov 21 2026 00:27:00``.
        arrived: When it arrived, epoch milliseconds.
        zone: The time zone.

    Raises:
        ValueError: If it is no time.

    >>> without_year("Dec 31 23:59:59", 1767225600000, "UTC"), without_year("Feb  5 00:00:00", 1795220900000, "UTC")
    (1767225599000, 1770249600000)
    """
    month, day, *others = text.split()
    if month in _WEEKDAYS:  # as Apache writes it: Sat Nov 21 00:27:00 2026
        month, day, *others = day, *others
    return syslog_times.until(" ".join((month, day, *others)), zone, arrived + 2 * _DAY)
