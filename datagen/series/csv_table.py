"""Reads a CSV file as columns of text: recognises encoding and separator, and keeps the line of each row."""

from __future__ import annotations

import codecs
import csv
import gzip
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

import polars as pl

from engine.spec.errors import NewnormalError
from pipelines.contracts.tables.columns import distinct
from pipelines.contracts.tables.exports import Header, Headers, is_annotation, plain, several
from pipelines.contracts.tables.separators import recognised

LINE = "\0line"
"""Column with the line number of each row; the header of a file is line 1."""

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
        labels: The columns that tell series apart, whatever they hold.
    """

    path: Path
    frame: pl.DataFrame
    ragged: pl.DataFrame
    separator: str
    labels: frozenset[str] = frozenset()

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
    separator = separator or _recognised(text)
    parts = list(_parts(text, separator)) if several(text) else [(Header(()), 0, text)]
    tables = [_table(path, header, first, part, separator) for header, first, part in parts]
    return CsvTable(
        path,
        pl.concat([table.frame for table in tables], how="diagonal"),
        pl.concat([table.ragged for table in tables]),
        separator,
        frozenset().union(*(table.labels for table in tables)),
    )


def _parts(text: str, separator: str) -> Iterator[tuple[Header, int, str]]:
    """The tables of a text that may have several: what is known of the header, the lines above it, and its lines."""
    headers, lines = Headers(), text.splitlines(keepends=True)
    begin, header, parts = 0, None, list[tuple[Header, int, str]]()
    for at, line in enumerate(lines):
        fields = next(csv.reader([line], delimiter=separator), []) if several(line) or headers.header is None else []
        if not fields or headers.is_line(fields):
            continue
        if header is not None:
            parts.append((header, begin, "".join(lines[begin:at])))
            header = None
        if headers.header is not None:
            begin, header = at, headers.header
    yield from parts
    if header is not None or not parts:
        yield header or Header(()), begin, "".join(lines[begin:])


def _table(path: Path, header: Header, above: int, text: str, separator: str) -> CsvTable:
    """One table with its header in the first line, below so many lines of the file."""
    try:
        first = next(csv.reader(text.splitlines(keepends=True), delimiter=separator), [])
    except csv.Error as error:
        raise unreadable(path, f"line {above + 1}: {error}") from None
    if not first:
        raise unreadable(path, f"line {above + 1} is empty" if text.strip() else "the file is empty")
    names = distinct(first)
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
    table = plain(frame.filter(~extra).drop(_REST), replace(header, names=tuple(names)))
    rows = table.frame
    unnamed = [name for name in rows.columns if not name.strip() and rows[name].null_count() == rows.height]
    return CsvTable(path, rows.drop(unnamed), frame.filter(extra).select(LINE, _REST), separator, table.labels)


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
    lines = (line for line in text[:1_000_000].splitlines() if line.strip() and not is_annotation(line))
    return recognised(list(islice(lines, _SAMPLE)))


def _lines(raw: pl.DataFrame, above: int, quoted: bool) -> pl.Series:
    """The number of the line at which each row begins; quoted fields may contain line breaks."""
    if not quoted:
        return pl.int_range(1 + above, 1 + above + raw.height, eager=True)
    breaks = raw.select(pl.sum_horizontal(pl.all().str.count_matches("\n").fill_null(0)).cast(pl.Int64)).to_series()
    return (breaks + 1).cum_sum().shift(1, fill_value=0) + 1 + above
