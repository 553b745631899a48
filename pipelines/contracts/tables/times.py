"""Times in CSV: ISO 8601, dates of several countries and of Kibana, Unix epochs; results are epoch milliseconds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from engine.formats.instants import instants

ACCEPTED = (
    "2026-11-01T12:00:00Z, 2026-11-01 12:00, 01.11.2026 12:00, 11/01/2026 12:00 PM, Nov 1, 2026 @ 12:00:00.000, "
    "or a Unix epoch in s, ms, µs or ns"
)

_EPOCHS = ((1e17, "ns"), (1e14, "µs"), (1e11, "ms"), (0.0, "s"))
"""From which size on an epoch is in which unit."""
_NUMBER = r"^[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?$"
_DIGITS = r"^((?:19|20)[0-9][0-9])(0[1-9]|1[0-2])(0[1-9]|[12][0-9]|3[01])(?:([0-9][0-9])([0-9][0-9])([0-9][0-9]))?$"
"""A date as eight digits, or with the time of day as fourteen."""
_NAMED = r"^([A-Z][a-z]{2})[a-z]* ([0-9]{1,2}), ([0-9]{4})(?: @)?"
_MONTHS = {
    f"-{name}-": f"-{month}-"
    for month, name in enumerate(
        ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"), start=1
    )
}
_ZONED = r"(?:Z|[+-][0-9]{2}:[0-9]{2})$"
_FORM = (
    r"^(?P<a>[0-9]{1,4})(?P<mark>[-./])(?P<b>[0-9]{1,2})[-./](?P<c>[0-9]{1,4})"
    r"(?:[T,\s]+(?P<hour>[0-9]{1,2}):(?P<minute>[0-9]{2})(?::(?P<second>[0-9]{2})(?:[.,](?P<part>[0-9]{1,9}))?)?)?"
    r"\s*(?P<half>[AaPp])?(?:\.?[Mm]\.?)?\s*(?P<utc>Z|UTC|GMT)?(?P<zone>[+-][0-9]{2}(?::?[0-9]{2})?)?$"
)
_FIRST, _LAST = -62_135_596_800_000, 253_402_300_799_999  # years 1 to 9999


@dataclass(frozen=True)
class Times:
    """A column of text that was read as times.

    Args:
        values: Epoch milliseconds; null where there is no time.
        notes: What was decided in reading the first message.
    """

    values: pl.Series
    notes: tuple[str, ...] = ()


def read_times(
    text: pl.Series, begins: npt.NDArray[np.int64], zone: str = "UTC", day_first: bool | None = None
) -> Times:
    """Reads a column of text as times.

    Numbers are Unix epochs, in the unit that their size suggests; eight or fourteen digits that make a date are dates.
    In dates such as 01.11.2026 the day comes first, in 11/01/2026 the month, unless a number above 12 in the same
    message or the user says otherwise. A local time that the clocks skipped is no time; one that came twice is the
    first.

    Args:
        text: The times as they stand there, without blanks around them, shape (n,).
        begins: The first line of each message, ascending from 0.
        zone: The time zone of those that name none.
        day_first: Whether in 01/11/2026 the day comes first; ``None``: as the message shows.

    >>> texts = ["1795219200", "2026-11-21T00:00:00Z", "Nov 21, 2026 @ 00:00:00.000", "11/21/2026 12:00:00 AM", "soon"]
    >>> read_times(pl.Series(texts), np.array([0])).values.to_list()
    [1795219200000, 1795219200000, 1795219200000, 1795219200000, None]
    """
    frame, cell = text.alias("t").to_frame(), pl.col("t")
    number = pl.when(cell.str.contains(_NUMBER) & ~cell.str.contains(_DIGITS)).then(cell.cast(pl.Float64, strict=False))
    size = number.abs()
    scaled = (
        pl.when(size < 1e11).then(number * 1000).when(size < 1e14).then(number)
        .when(size < 1e17).then(number / 1000).otherwise(number / 1_000_000)
    )  # fmt: skip
    plain = ~cell.str.contains(r"^[0-9]+$") & (cell.str.contains(_ZONED) | pl.lit(zone == "UTC"))
    iso = pl.when(plain).then(instants(cell))
    read = frame.select(number.alias("number"), scaled.round().alias("epoch"), iso.alias("iso"))
    epochs = read.select(pl.coalesce("epoch", "iso")).to_series()
    values = _bounded(epochs)
    rest = epochs.is_null() & text.is_not_null()
    notes: list[str] = []
    if rest.any():
        others, notes = _dates(text.filter(rest), np.flatnonzero(rest.to_numpy()), begins, zone, day_first)
        values = values.scatter(rest.arg_true(), others)
    unzoned = (read["iso"].is_not_null() & ~text.str.contains(_ZONED)).any()
    notes = [*notes, *([_unzoned(zone)] if unzoned and _unzoned(zone) not in notes else [])]
    return Times(values, (*_unit(read["number"]), *notes))


def _unzoned(zone: str) -> str:
    return f"times without an offset are taken as {zone}"


def _unit(number: pl.Series) -> list[str]:
    if number.null_count() > len(number) // 2 or number.null_count() == len(number):
        return []
    size = abs(float(number.median() or 0.0))  # type: ignore[arg-type]
    return [f"times are epochs in {next(unit for least, unit in _EPOCHS if size >= least)}"]


def _dates(
    text: pl.Series, lines: npt.NDArray[np.int64], begins: npt.NDArray[np.int64], zone: str, day_first: bool | None
) -> tuple[pl.Series, list[str]]:
    """Epoch milliseconds of dates, null for what is none; and what was decided."""
    parts = _numeric(text).alias("t").to_frame().select(pl.col("t").str.extract_groups(_FORM)).unnest("t")
    year_first = pl.col("a").str.len_chars() == 4
    message = np.searchsorted(begins, lines, side="right")
    days, notes = _order(parts.with_columns(pl.Series("message", message)), day_first)
    parts = parts.with_columns(days.alias("days"))
    length = pl.col("c").str.len_chars()
    year = pl.when(length == 4).then("c").when(length == 2).then("20" + pl.col("c"))
    day, month = pl.when("days").then("a").otherwise("b"), pl.when("days").then("b").otherwise("a")
    iso = (
        pl.when(year_first)
        .then(pl.format("{}-{}-{}", "a", "b", "c"))
        .otherwise(pl.format("{}-{}-{}", year, month, day))
    )
    clock = pl.format("{}:{}:{}.{}", _hour(), *(pl.col(n).fill_null("0") for n in ("minute", "second", "part")))
    written, form = pl.format("{} {}", iso, clock), "%Y-%m-%d %H:%M:%S%.f"
    naive = written.str.to_datetime(form, time_unit="ms", strict=False)
    local = naive.dt.replace_time_zone(zone, ambiguous="earliest", non_existent="null")
    absolute = pl.col("utc").is_not_null() | pl.col("zone").is_not_null()
    offset = pl.col("zone").fill_null("+00").str.pad_end(5, "0")
    utc = (written + offset).str.to_datetime(f"{form}%z", time_unit="ms", time_zone="UTC", strict=False)
    ms = parts.select(pl.when(absolute).then(utc.dt.epoch("ms")).otherwise(local.dt.epoch("ms"))).to_series()
    bare = parts.filter(pl.col("a").is_not_null() & ~absolute).height
    return _bounded(ms), [*notes, *([_unzoned(zone)] if bare else [])]


def _numeric(text: pl.Series) -> pl.Series:
    """The texts with dates of digits alone, or with the name of the month, in the form of the others."""
    text = text.str.replace(_DIGITS, "$1-$2-$3 $4:$5:$6").str.strip_suffix(" ::")
    return text.str.replace(_NAMED, "$3-$1-$2").str.replace_many(_MONTHS)


def _hour() -> pl.Expr:
    """The hour from 0 to 23, from a 24-hour or a 12-hour clock."""
    hour = pl.col("hour").cast(pl.Int64).fill_null(0)
    of_half = hour % 12 + pl.when(pl.col("half").str.to_lowercase() == "p").then(12).otherwise(0)
    return pl.when(pl.col("half").is_null()).then(hour).when(hour.is_between(1, 12)).then(of_half)


def _order(dates: pl.DataFrame, day_first: bool | None) -> tuple[pl.Series, list[str]]:
    """Whether the day comes first in each date such as 01.11.2026, and this in words, if there are such dates."""
    dates = dates.with_columns(short=(pl.col("a").str.len_chars() < 4).fill_null(False))
    if not dates["short"].any():
        return pl.Series([True]).new_from_index(0, dates.height), []
    short = pl.when("short")
    above = {name: short.then(pl.col(name).cast(pl.Int64) > 12) for name in ("a", "b")}
    first, second = (above[name].fill_null(False).sum().over("message") for name in ("a", "b"))
    mark = short.then("mark").drop_nulls().first().over("message")
    proven = first + second > 0
    decided = pl.when(proven).then(first >= second).otherwise(mark != "/")
    days = decided if day_first is None else pl.lit(day_first)
    columns = dates.select(days.alias("days"), proven.alias("proven"))
    at = dates["short"].arg_max() or 0
    example = dates["mark"][at].join(dates.select("a", "b", "c").row(at))
    order, other = ("day", "month") if columns["days"][at] else ("month", "day")
    words = f"dates such as {example} are read {order} first"
    if day_first is None and not columns["proven"][at]:
        words += f"; nothing in the file proves it, --{other}-first reads them the other way"
    return columns["days"].fill_null(True), [words]


def _bounded(ms: pl.Series) -> pl.Series:
    inside = pl.when(pl.col("t").is_between(_FIRST, _LAST)).then("t")
    return ms.alias("t").to_frame().select(inside.cast(pl.Int64, strict=False)).to_series()
