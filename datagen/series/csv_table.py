"""Reads a CSV file as columns of text: recognises encoding and separator, and keeps the line of each row."""

from __future__ import annotations

import codecs
import csv
import gzip
import zlib
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import polars as pl

from engine.spec.errors import NewnormalError

LINE = "\0line"
"""Column with the line number of each row; the header of a file is line 1."""

_SEPARATORS = (";", "\t", ",", "|")
_SAMPLE = 50
_REST = "\0rest"


@dataclass(frozen=True)
class CsvTable:
    """The content of a file.

    Args:
        path: The file.
        frame: Its columns as text without spaces around it, empty text as null; and `LINE`. Blank lines are left out.
        ragged: Rows with more fields than the header, which are not in ``frame``: `LINE` and the surplus fields.
        separator: The separator of columns.
    """

    path: Path
    frame: pl.DataFrame
    ragged: pl.DataFrame
    separator: str

    @property
    def names(self) -> list[str]:
        """The names of the columns."""
        return [name for name in self.frame.columns if name != LINE]

    @property
    def shown(self) -> list[str]:
        """The names of the columns that have one."""
        return [name for name in self.names if name.strip()]


def read_table(path: Path, separator: str | None = None) -> CsvTable:
    """Reads a file.

    Args:
        path: A text file in UTF-8, UTF-16 with its mark, or Windows-1252; maybe compressed by gzip.
        separator: The separator of columns; ``None``: the one of ``; tab , |`` that divides most lines like the header.

    Raises:
        NewnormalError: ``SERIES_UNREADABLE``.
    """
    text = _text(path)
    above = 0
    if text.startswith("sep=") and len(first := text.split("\n", 1)[0].strip()) == 5:  # Excel's own hint
        separator, above, text = separator or first[4], 1, text.partition("\n")[2]
    separator = separator or _recognised(text)
    try:
        header = next(csv.reader(text.splitlines(keepends=True), delimiter=separator), [])
    except csv.Error as error:
        raise unreadable(path, f"line {above + 1}: {error}") from None
    if not header:
        raise unreadable(path, f"line {above + 1} is empty" if text.strip() else "the file is empty")
    names = _names(header)
    try:
        raw = pl.read_csv(
            text.encode(),
            has_header=False,
            schema=dict.fromkeys([*names, _REST], pl.String),
            separator=separator,
            truncate_ragged_lines=True,
            missing_columns="insert",
        )
    except pl.exceptions.PolarsError as error:
        why = "a quotation mark is not closed, or stands inside a field" if '"' in text else str(error).splitlines()[0]
        raise unreadable(path, why) from None
    fields = pl.all().exclude(LINE)
    lines = _lines(raw, above, '"' in text).alias(LINE)
    frame = raw.with_columns(pl.all().str.strip_chars().replace("", None)).with_columns(lines)[1:]
    frame = frame.filter(pl.any_horizontal(fields.is_not_null()))
    extra = pl.col(_REST).is_not_null()
    unnamed = [name for name in names if not name.strip() and frame[name].null_count() == frame.height]
    return CsvTable(
        path, frame.filter(~extra).drop(_REST, *unnamed), frame.filter(extra).select(LINE, _REST), separator
    )


def unreadable(path: str | Path, why: str, accepted: str = "") -> NewnormalError:
    """The error of a file that cannot be read."""
    usual = "a CSV file with a header, a column of times (time, timestamp, ts, date, …) and one or more of numbers"
    return NewnormalError("SERIES_UNREADABLE", why, str(path), accepted or usual, "the file was not read")


def _text(path: Path) -> str:
    try:
        data = path.read_bytes()
        if data.startswith(b"\x1f\x8b"):
            data = gzip.decompress(data)
    except (OSError, EOFError, zlib.error) as error:
        raise unreadable(path, getattr(error, "strerror", None) or str(error)) from None
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return data.decode("utf-16", "replace")
    if b"\0" in data:
        raise unreadable(path, "this is a binary file, no text")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("windows-1252", "replace")


def _recognised(text: str) -> str:
    """The separator that divides most lines into as many columns as the first, and into more than one."""
    lines = list(islice((line for line in text[:1_000_000].splitlines() if line.strip()), _SAMPLE))

    def merit(separator: str) -> tuple[bool, float, int]:
        widths = [len(row) for row in csv.reader(lines, delimiter=separator)] or [0]
        return widths[0] > 1, sum(width == widths[0] for width in widths) / len(widths), widths[0]

    best = max(_SEPARATORS, key=merit)
    return best if merit(best)[0] else ","


def _names(header: list[str]) -> list[str]:
    """Names of columns, all different: a second ``cpu`` is ``cpu_2``; columns without a name are spaces."""
    names: list[str] = []
    for number, given in enumerate(header, 1):
        name = given.strip().replace("\0", "") or " " * number
        count = 2
        while name in names:
            name, count = f"{given.strip()}_{count}", count + 1
        names.append(name)
    return names


def _lines(raw: pl.DataFrame, above: int, quoted: bool) -> pl.Series:
    """The number of the line at which each row begins; quoted fields may contain line breaks."""
    if not quoted:
        return pl.int_range(1 + above, 1 + above + raw.height, eager=True)
    breaks = raw.select(pl.sum_horizontal(pl.all().str.count_matches("\n").fill_null(0)).cast(pl.Int64)).to_series()
    return (breaks + 1).cum_sum().shift(1, fill_value=0) + 1 + above
