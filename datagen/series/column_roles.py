"""Finds the meaning of the columns of a file: as the user says, otherwise by the usual names."""

from __future__ import annotations

from dataclasses import dataclass

from datagen.series.csv_format import Reading
from datagen.series.csv_table import CsvTable, unreadable
from pipelines.contracts.tables.columns import MACHINES, METRICS, TIMES, first, time_columns

LABELS = ("label", "is_anomaly", "anomaly", "labels")


@dataclass(frozen=True)
class ColumnRoles:
    """Names of columns.

    Args:
        time: The column of times.
        clock: The column of the time of day, if ``time`` holds only the date.
        values: The columns that have values, or may have values.
        entity: The column of machines, if there is one.
        metric: The column of metrics, if there is one.
        label: The column of labels, if there is one.
        chosen: Whether the user named the columns of values.
    """

    time: str
    clock: str | None
    values: tuple[str, ...]
    entity: str | None
    metric: str | None
    label: str | None
    chosen: bool


def find_columns(table: CsvTable, reading: Reading) -> ColumnRoles:
    """Finds the meaning of the columns of a file.

    Raises:
        NewnormalError: ``SERIES_UNREADABLE`` if a column that the user named, or the column of times, is missing.
    """
    chosen = reading.value_columns
    time = _column(table, reading.time_column, TIMES, "--time-column", chosen)
    if time is None:
        raise unreadable(
            table.path,
            f"no time column among {', '.join(table.shown)}",
            f"one named {', '.join(TIMES)}, or --time-column",
        )
    entity = _column(table, reading.entity_column, MACHINES, "--entity-column", chosen)
    metric = _column(table, reading.metric_column, METRICS, "--metric-column", chosen)
    label = _column(table, None, LABELS, "", chosen)
    time, clock = _with_clock(table, time)
    taken = {time, entity, metric, label}
    free = [name for name in table.names if name not in taken and name.strip().lower() not in (*TIMES, *LABELS)]
    values = [_named(table, name, "--value-column") for name in chosen] or [name for name in free if name.strip()]
    return ColumnRoles(time, clock, tuple(dict.fromkeys(values)), entity, metric, label, bool(chosen))


def _column(
    table: CsvTable, chosen: str | None, usual: tuple[str, ...], option: str, values: tuple[str, ...]
) -> str | None:
    if chosen is not None:
        return _named(table, chosen, option)
    free = [name for name in table.names if name not in values]
    at = first(free, usual)
    return None if at is None else free[at]


def _with_clock(table: CsvTable, time: str) -> tuple[str, str | None]:
    """The column of times, or that of the date and that of the time of day."""
    filled = table.frame.drop_nulls(time)
    if filled.is_empty():
        return time, None
    at = time_columns(table.names, filled.select(table.names).row(0), table.names.index(time), TIMES)
    names = [table.names[place] for place in at]
    return names[0], names[1] if len(names) > 1 else None


def _named(table: CsvTable, name: str, option: str) -> str:
    if name in table.names:
        return name
    raise unreadable(table.path, f"{option}: there is no column {name!r}", f"one of {', '.join(table.shown)}")
