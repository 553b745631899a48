"""Reads one CSV file as series: its machines, metrics, times and values, and a report."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from datagen.series.column_roles import find_columns
from datagen.series.csv_format import USUAL, Reading
from datagen.series.csv_table import LINE, read_table, unreadable
from datagen.series.findings import ENTITY, INSTANCE, METRIC, TIME, Parsed, check_usable
from datagen.series.findings import report as found
from datagen.series.numbers import cleaned, decimal_mark, value
from datagen.series.report import SeriesReport
from datagen.series.times import read_times


def read_series(
    path: str | Path, reading: Reading = USUAL, *, keep_missing: bool = False
) -> tuple[pl.DataFrame, SeriesReport]:
    """The values of a CSV file, in order of time.

    Args:
        path: A CSV file with a header; `read_table`, `read_times` and `numbers.value` say what is accepted.
        reading: What the user says about its format; everything else is recognised.
        keep_missing: Whether a missing value is a row with null; otherwise it is left out.

    Returns:
        Columns ``time`` (int64, epoch milliseconds), ``entity`` (the machine; null if the file names none), ``metric``
        (the name of the value's column, or what the column of metrics says; labels in braces) and ``value``
        (float64, finite or null), one row a value, sorted by time, else in the order of the file; duplicate times are
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
    name = pl.coalesce(metric if len(parsed.used) == 1 else metric + "." + column, column)
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
    times, _ = read_times(table.frame[columns.time], reading)
    frame = table.frame.select(times.alias("time"), _or_null(columns.entity, "entity"), marked.alias("label"))
    return frame.drop_nulls("time").sort("time", maintain_order=True)


def _parse(path: Path, reading: Reading) -> Parsed:
    table = read_table(path, reading.separator)
    columns = find_columns(table, reading)
    if not columns.values:
        raise unreadable(path, f"no value column among {', '.join(table.shown)}")
    times, notes = read_times(table.frame[columns.time], reading)
    texts = table.frame.select(cleaned(name) for name in columns.values)
    mark = reading.decimal or decimal_mark(texts, table.frame[LINE], path)
    rows = table.frame.select(LINE, _or_null(columns.entity, ENTITY), _or_null(columns.metric, METRIC))
    rows = rows.with_columns(times.alias(TIME)).hstack(texts.select(value(name, mark) for name in columns.values))
    used = columns.values if columns.chosen else tuple(name for name in columns.values if rows[name].count())
    left = [name for name in columns.values if name not in used] if not columns.chosen else []
    labels = _labels(rows.hstack(table.frame.select(pl.col(left).name.prefix("\0"))), left)
    instance = _instance(table.frame, labels).alias(INSTANCE)
    return Parsed(table, columns, texts, rows.with_columns(instance), used, labels, (*_comma(mark), *notes))


def _labels(rows: pl.DataFrame, texts: list[str]) -> tuple[str, ...]:
    """The columns of text that distinguish rows of the same machine, metric and time; none if these are all distinct.

    Remarks beside the values do not: only where rows would fall together are they series of their own.
    """
    keys = [TIME, ENTITY, METRIC]
    distinct = rows.select(keys).unique().height
    if distinct == rows.height:
        return ()
    return tuple(name for name in texts if rows.select(*keys, f"\0{name}").unique().height > distinct)


def _instance(frame: pl.DataFrame, labels: tuple[str, ...]) -> pl.Series:
    """The labels of each row in braces, as in the names of metrics; empty text where there are none."""
    pairs = [pl.lit(f"{name}=") + pl.col(name) for name in sorted(labels)]
    if not pairs:
        return pl.Series([""], dtype=pl.String).new_from_index(0, frame.height)
    inside = pl.concat_str(pairs, separator=",", ignore_nulls=True)
    return frame.select(pl.when(inside != "").then("{" + inside + "}").otherwise(pl.lit(""))).to_series()


def _or_null(name: str | None, alias: str) -> pl.Expr:
    return (pl.col(name) if name else pl.lit(None, pl.String)).alias(alias)


def _comma(mark: str) -> list[str]:
    return ["the decimal mark is a comma"] if mark == "," else []
