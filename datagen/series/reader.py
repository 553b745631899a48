"""Reads one CSV file as series: its machines, metrics, times and values, and a report."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import polars as pl

from datagen.series.column_roles import ColumnRoles, find_columns
from datagen.series.csv_format import USUAL, Reading
from datagen.series.csv_table import LINE, CsvTable, read_table, unreadable
from datagen.series.findings import ENTITY, INSTANCE, METRIC, TIME, Parsed, check_usable
from datagen.series.findings import report as found
from datagen.series.report import SeriesReport
from pipelines.contracts.tables.columns import VALUE
from pipelines.contracts.tables.numbers import GROUPED, read_numbers
from pipelines.contracts.tables.times import Times, read_times


def read_series(
    path: str | Path, reading: Reading = USUAL, *, keep_missing: bool = False
) -> tuple[pl.DataFrame, SeriesReport]:
    """The values of a CSV file, in order of time.

    Args:
        path: A CSV file with a header; `read_table`, `read_times` and `read_numbers` say what is accepted.
        reading: What the user says about its format; everything else is recognised.
        keep_missing: Whether a missing value is a row with null; otherwise it is left out.

    Returns:
        Columns ``time`` (int64, epoch milliseconds), ``entity`` (the machine; null if the file names none), ``metric``
        (the name of the value's column, or what the column of metrics says; labels in braces) and ``value``
        (float64, finite or null), one row per value, sorted by time, else in the order of the file; duplicate times are
        kept. And the report.

    Raises:
        NewnormalError: ``SERIES_UNREADABLE`` if the file cannot be read or has no column of times or of values;
            ``SERIES_EMPTY`` if no line of it has a time and a number.
    """
    parsed = _parse(Path(path), reading)
    check_usable(parsed)
    column, metric = pl.col("\0column"), pl.col(METRIC)
    long = parsed.kept.unpivot(
        parsed.used, index=[TIME, ENTITY, METRIC, INSTANCE], variable_name="\0column", value_name="\0value"
    )
    alone = (column.str.to_lowercase() == VALUE) | pl.lit(len(parsed.used) == 1)
    name = pl.coalesce(pl.when(alone).then(metric).otherwise(metric + "." + column), column)
    name = name + pl.col(INSTANCE)
    frame = long.select(time=TIME, entity=ENTITY, metric=name, value="\0value").sort("time", maintain_order=True)
    report = found(parsed, frame["value"].null_count())
    return frame if keep_missing else frame.drop_nulls("value"), report


def read_labels(path: str | Path, reading: Reading = USUAL) -> pl.DataFrame | None:
    """The label column of a CSV file as of `read_series`; ``None`` if it has none.

    Returns:
        Columns ``time`` (int64, epoch milliseconds), ``entity`` (null if the file names none) and ``label`` (bool),
        sorted by time.

    Raises:
        NewnormalError: ``SERIES_UNREADABLE`` if the file cannot be read or has no column of times.
    """
    table = read_table(Path(path), reading.separator)
    columns = find_columns(table, reading)
    if columns.label is None:
        return None
    text = table.frame[columns.label].str.to_lowercase()
    marked = text.is_in(["true", "yes"]) | (text.cast(pl.Float64, strict=False).fill_null(0.0) > 0)
    times = _times(table, columns, reading).values
    frame = table.frame.select(times.alias("time"), _or_null(columns.entity, "entity"), marked.alias("label"))
    return frame.drop_nulls("time").sort("time", maintain_order=True)


def _parse(path: Path, reading: Reading) -> Parsed:
    table = read_table(path, reading.separator)
    columns = find_columns(table, reading)
    if not columns.values:
        raise unreadable(path, f"no value column among {', '.join(table.shown)}")
    times = _times(table, columns, reading)
    texts, numbers, comma = _numbers(table, columns, reading)
    rows = table.frame.select(LINE, _or_null(columns.entity, ENTITY), _or_null(columns.metric, METRIC))
    rows = rows.with_columns(times.values.alias(TIME)).hstack(numbers)
    used = columns.values if columns.chosen else tuple(name for name in columns.values if rows[name].count())
    left = [name for name in columns.values if name not in used] if not columns.chosen else []
    labels = _labels(rows.hstack(table.frame.select(pl.col(left).name.prefix("\0"))), left, table.labels)
    instance = _instance(table.frame, labels).alias(INSTANCE)
    notes = (*(["the decimal mark is a comma"] if comma else ()), *times.notes)
    return Parsed(table, columns, texts, rows.with_columns(instance), used, labels, notes)


def _times(table: CsvTable, columns: ColumnRoles, reading: Reading) -> Times:
    clock = [pl.col(columns.clock)] if columns.clock else []
    text = table.frame.select(pl.concat_str([pl.col(columns.time), *clock], separator=" ")).to_series()
    return read_times(text, np.array([0]), reading.timezone, reading.day_first)


def _labels(rows: pl.DataFrame, texts: list[str], required: frozenset[str]) -> tuple[str, ...]:
    """The columns of text that tell one series from another: all, but for those that change along a series.

    A column distinguishes rows of the same machine, metric and time, or holds one text for each of the series that
    these make; a remark, or a state that changes with time, would make new series of one.
    """
    keys = [TIME, ENTITY, METRIC]
    distinct = rows.select(keys).unique().height
    needed = list(required)
    if distinct < rows.height:
        needed += [name for name in texts if rows.select(*keys, f"\0{name}").unique().height > distinct]
    needed = [name for name in texts if name in needed]
    series = [ENTITY, METRIC, *(f"\0{name}" for name in needed)]
    among = rows.select(series).unique().height
    others = [name for name in texts if name not in needed]
    lasting = (name for name in others if rows.select(*series, f"\0{name}").unique().height == among)
    empty = {name for name in texts if rows[f"\0{name}"].null_count() == rows.height}
    return tuple(name for name in (*needed, *lasting) if name not in empty)


def _instance(frame: pl.DataFrame, labels: tuple[str, ...]) -> pl.Series:
    """The labels of each row in braces, as in the names of metrics; empty text where there are none."""
    pairs = [pl.lit(f"{name}=") + pl.col(name) for name in sorted(labels)]
    if not pairs:
        return pl.Series([""], dtype=pl.String).new_from_index(0, frame.height)
    inside = pl.concat_str(pairs, separator=",", ignore_nulls=True)
    return frame.select(pl.when(inside != "").then("{" + inside + "}").otherwise(pl.lit(""))).to_series()


def _or_null(name: str | None, alias: str) -> pl.Expr:
    return (pl.col(name) if name else pl.lit(None, pl.String)).alias(alias)


def _numbers(table: CsvTable, columns: ColumnRoles, reading: Reading) -> tuple[pl.DataFrame, pl.DataFrame, bool]:
    """The columns of values as text and as numbers, and whether their decimal mark is a comma."""
    names = [name for name in columns.values if name not in table.labels or columns.chosen]
    of_text = {name: table.frame[name] for name in columns.values}
    numbers = {name: pl.Series([None], dtype=pl.Float64).new_from_index(0, table.frame.height) for name in of_text}
    if not names or table.frame.is_empty():
        return pl.DataFrame(of_text), pl.DataFrame(numbers), False
    read = read_numbers([of_text[name] for name in names], np.array([0]), reading.decimal)
    for line in read.doubtful:
        text = next(text[line] for text in read.texts if re.search(GROUPED, text[line] or ""))
        what = f"line {table.frame[LINE][line]}: {text!r} may be {text.replace(',', '')} or {text.replace(',', '.')}"
        accepted = "--decimal . if the comma groups thousands, --decimal , if it is the decimal mark"
        raise unreadable(table.path, what, accepted)
    of_text |= dict(zip(names, read.texts, strict=True))
    numbers |= dict(zip(names, read.values, strict=True))
    return pl.DataFrame(of_text), pl.DataFrame(numbers), bool(read.comma.any())
