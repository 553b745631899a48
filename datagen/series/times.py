"""Reads times in files: ISO 8601, dates of several countries, Unix epochs; results are epoch milliseconds."""

from __future__ import annotations

import polars as pl

from datagen.series.csv_format import Reading

ACCEPTED = (
    "2026-11-01T12:00:00Z, 2026-11-01 12:00, 01.11.2026 12:00, 11/01/2026 12:00 PM, or a Unix epoch in s, ms, µs or ns"
)

_EPOCHS = ((1e17, 1e-6, "ns"), (1e14, 1e-3, "µs"), (1e11, 1.0, "ms"), (0.0, 1e3, "s"))  # from this size on; ms in one
_DAY = r"(?:19|20)\d\d(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])"
_FORM = (
    r"^(?P<a>\d{1,4})(?P<mark>[-./])(?P<b>\d{1,2})[-./](?P<c>\d{1,4})"
    r"(?:[T,\s]+(?P<hour>\d{1,2}):(?P<minute>\d{2})(?::(?P<second>\d{2})(?:[.,](?P<part>\d{1,9}))?)?)?"
    r"\s*(?P<half>[AaPp])?(?:\.?[Mm]\.?)?\s*(?P<utc>Z|UTC|GMT)?(?P<zone>[+-]\d{2}(?::?\d{2})?)?$"
)
_FIRST, _LAST = -62_135_596_800_000, 253_402_300_799_999  # years 1 to 9999


def read_times(text: pl.Series, reading: Reading) -> tuple[pl.Series, tuple[str, ...]]:
    """The instants of a column of text, in epoch milliseconds, null where there is none; and what was decided.

    Numbers are Unix epochs, in the unit that their median suggests; if all are of eight or fourteen digits that make a
    date they are dates. In dates such as 01.11.2026 the day comes first, in 11/01/2026 the month, unless a number above
    12 or the user says otherwise. A local time that the clocks skipped is no time; one that came twice is the first.
    """
    if text.str.contains(rf"^{_DAY}(?:\d{{6}})?$").all() and text.len() > text.null_count():
        days = text.str.replace(r"^(\d{4})(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)$", "$1-$2-$3 $4:$5:$6")
        return _dates(days.str.replace(r"^(\d{4})(\d\d)(\d\d)$", "$1-$2-$3"), reading)
    number = text.cast(pl.Float64, strict=False)
    if number.null_count() <= text.len() // 2 and number.len() > number.null_count():
        size = abs(float(number.median() or 0.0))  # type: ignore[arg-type]
        factor, unit = next((factor, unit) for least, factor, unit in _EPOCHS if size >= least)
        return _bounded((number * factor).round().cast(pl.Int64, strict=False)), (f"times are epochs in {unit}",)
    return _dates(text, reading)


def _dates(text: pl.Series, reading: Reading) -> tuple[pl.Series, tuple[str, ...]]:
    parts = text.alias("t").to_frame().select(pl.col("t").str.extract_groups(_FORM)).unnest("t")
    year_first = pl.col("a").str.len_chars() == 4
    day_first, note = _order(parts.filter(~year_first), reading.day_first)
    length = pl.col("c").str.len_chars()
    year = pl.when(length == 4).then("c").when(length == 2).then("20" + pl.col("c"))
    day, month = ("a", "b") if day_first else ("b", "a")
    iso = (
        pl.when(year_first)
        .then(pl.format("{}-{}-{}", "a", "b", "c"))
        .otherwise(pl.format("{}-{}-{}", year, month, day))
    )
    clock = pl.format("{}:{}:{}.{}", _hour(), *(pl.col(n).fill_null("0") for n in ("minute", "second", "part")))
    naive = pl.format("{} {}", iso, clock).str.to_datetime("%Y-%m-%d %H:%M:%S%.f", time_unit="ms", strict=False)
    local = naive.dt.replace_time_zone(reading.timezone, ambiguous="earliest", non_existent="null")
    offset = pl.col("zone").str.replace(":", "", literal=True)
    minutes = offset.str.slice(1, 2).cast(pl.Int64) * 60 + offset.str.slice(3).cast(pl.Int64, strict=False).fill_null(0)
    ahead = pl.when(offset.str.starts_with("-")).then(-minutes).otherwise(minutes).fill_null(0)
    absolute = pl.col("utc").is_not_null() | pl.col("zone").is_not_null()
    utc = naive.dt.epoch("ms") - ahead * 60_000
    ms = parts.select(pl.when(absolute).then(utc).otherwise(local.dt.epoch("ms"))).to_series()
    bare = parts.filter(pl.col("a").is_not_null() & ~absolute).height
    return _bounded(ms), (*note, *([f"times without an offset are taken as {reading.timezone}"] if bare else []))


def _hour() -> pl.Expr:
    """The hour from 0 to 23, from a 24-hour or a 12-hour clock."""
    hour = pl.col("hour").cast(pl.Int64).fill_null(0)
    of_half = hour % 12 + pl.when(pl.col("half").str.to_lowercase() == "p").then(12).otherwise(0)
    return pl.when(pl.col("half").is_null()).then(hour).when(hour.is_between(1, 12)).then(of_half)


def _order(dates: pl.DataFrame, told: bool | None) -> tuple[bool, list[str]]:
    """Whether the day comes first in dates such as 01.11.2026, and this in words, if there are such dates."""
    if dates.is_empty():
        return True, []
    example = dates["mark"][0].join(dates.select("a", "b", "c").row(0))
    first, second = (int((dates[name].cast(pl.Int64) > 12).sum()) for name in ("a", "b"))
    day_first = told if told is not None else first >= second if first + second else dates["mark"][0] != "/"
    order, other = ("day", "month") if day_first else ("month", "day")
    words = f"dates such as {example} are read {order} first"
    unproven = told is None and not first + second
    return day_first, [
        f"{words}; nothing in the file proves it, --{other}-first reads them the other way" if unproven else words
    ]


def _bounded(ms: pl.Series) -> pl.Series:
    return ms.to_frame("t").select(pl.when(pl.col("t").is_between(_FIRST, _LAST)).then("t")).to_series()
