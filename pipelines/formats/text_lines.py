"""Splits messages of text formats into lines, by the column."""

from __future__ import annotations

import re

import polars as pl
import pyarrow as pa

from pipelines.formats.refusals import FORMAT_UNKNOWN, LINE_INVALID, Refusals

_BLANKS = " \t\r\n"


def texts(values: pa.Array, refusals: Refusals) -> pl.DataFrame:
    """The messages that are text: columns ``row`` and ``text``; the others are refused (``FORMAT_UNKNOWN``).

    Args:
        values: The messages.
        refusals: Where messages without a value, and those that are no UTF-8, are added.
    """
    try:
        utf8 = values.cast(pa.large_string())  # Arrow looks at the bytes where they are; Polars would copy them
    except pa.ArrowInvalid:
        utf8 = pa.array([_text(value) for value in values.to_pylist()], pa.large_string())
    frame = pl.DataFrame({"text": pl.Series(values=pl.from_arrow(utf8), dtype=pl.String)})
    frame = frame.with_row_index("row").with_columns(pl.col("row").cast(pl.Int32))
    blank = ~pl.col("text").str.contains(r"\S").fill_null(False)
    for row in frame.filter(blank)["row"].to_list():
        refusals.add(row, FORMAT_UNKNOWN, "the message is empty, or no text (UTF-8)")
    return frame.filter(~blank)


def _text(value: bytes | None) -> str | None:
    try:
        return None if value is None else value.decode()
    except UnicodeDecodeError:
        return None


def lines(values: pa.Array, refusals: Refusals, whole: str = "", end: str = _BLANKS) -> pl.DataFrame:
    """The lines of the messages: columns ``row``, ``number`` (the line in its message, from 1) and ``line``.

    Line ends, blank lines and blanks at both ends are left out.

    Args:
        values: The messages.
        refusals: See `texts`.
        whole: A pattern of a line, where lines may hold line ends in quotes; it is used for messages in which one may
            be, all with backslashes among them. Messages that do not consist of such lines and line ends alone are
            refused (``LINE_INVALID``).
        end: What is left out at the ends of lines.
    """
    frame = texts(values, refusals)
    split = pl.col("text").str.split("\n")
    if whole:
        quoted = pl.all_horizontal(pl.col("text").str.contains(mark, literal=True) for mark in ('"', "\n"))
        frame = frame.with_columns(quoted=quoted, across=quoted & _may_span(pl.col("text")))
        pieces = pl.when("across").then("text").str.extract_all(whole)
        if frame["across"].any():
            torn = frame.filter(pl.col("across") & (_bytes_of(pieces) != _bytes_without_breaks(pl.col("text"))))
            for row, text in torn.select("row", "text").iter_rows():
                refusals.add(row, LINE_INVALID, f"line {_open_quote(text, whole)}: a text in quotes does not end")
            frame = frame.filter(~pl.col("row").is_in(torn["row"].implode())) if torn.height else frame
            split = pl.when("across").then(pieces).otherwise(split)
        if frame["quoted"].any():
            split = pl.when("quoted").then(split.list.eval(pl.element().filter(pl.element() != ""))).otherwise(split)
    numbers = pl.int_ranges(1, pl.col("line").list.len() + 1, dtype=pl.Int32).alias("number")
    frame = frame.select("row", line=split).with_columns(numbers).explode("line", "number")
    line = pl.col("line").str
    stripped = line.strip_chars(end) if end == _BLANKS else line.strip_chars_start(_BLANKS).str.strip_chars_end(end)
    frame = frame.with_columns(line=stripped)
    return frame.filter(pl.col("line").fill_null("") != "")


def _may_span(text: pl.Expr) -> pl.Expr:
    """Whether a text in quotes may hold a line end: one does, not all end, or backslashes may hide a quote."""
    pieces = text.str.split('"')
    within = pieces.list.gather_every(2, 1).list.join("")
    marks = text.str.contains("\\", literal=True) | within.str.contains("\n", literal=True)
    return marks | (pieces.list.len() % 2 == 0)


def _bytes_without_breaks(text: pl.Expr) -> pl.Expr:
    return text.str.len_bytes() - text.str.count_matches("\n", literal=True)


def _bytes_of(pieces: pl.Expr) -> pl.Expr:
    """The bytes of all pieces of a text without their line ends."""
    return pieces.list.eval(_bytes_without_breaks(pl.element())).list.sum()


def _open_quote(text: str, whole: str) -> int:
    """The number of the line, from 1, in which a text begins to be none of the pattern and no line end."""
    at = 0
    for found in re.finditer(whole, text):
        if text[at : found.start()].strip("\n"):
            break
        at = found.end()
    at += len(text[at:]) - len(text[at:].lstrip("\n"))
    return text.count("\n", 0, at) + 1
