"""Finds the meaning of the columns of a file: as the user says, otherwise by the usual names."""

from __future__ import annotations

from dataclasses import dataclass

from datagen.series.csv_format import Reading
from datagen.series.csv_table import CsvTable, unreadable

TIMES = ("time", "timestamp", "@timestamp", "_time", "datetime", "date", "ts", "epoch")
LABELS = ("label", "is_anomaly", "anomaly", "labels")
ENTITIES = ("entity", "host", "host.name", "hostname", "machine", "instance", "server")
METRICS = ("metric", "metric.name", "metric_name", "measurement")


@dataclass(frozen=True)
class ColumnRoles:
    """Names of columns.

    Args:
        time: The column of times.
        values: The columns that have values, or may have values.
        entity: The column of machines, if there is one.
        metric: The column of metrics, if there is one.
        label: The column of labels, if there is one.
        chosen: Whether the user named the columns of values.
    """

    time: str
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
    given = reading.value_columns
    time = _column(table, reading.time_column, TIMES, "--time-column", given)
    if time is None:
        raise unreadable(
            table.path,
            f"no time column among {', '.join(table.shown)}",
            f"one named {', '.join(TIMES)}, or --time-column",
        )
    entity = _column(table, reading.entity_column, ENTITIES, "--entity-column", given)
    metric = _column(table, reading.metric_column, METRICS, "--metric-column", given)
    label = _column(table, None, LABELS, "", given)
    taken = {time, entity, metric, label}
    free = [name for name in table.names if name not in taken and name.strip().lower() not in (*TIMES, *LABELS)]
    values = [_named(table, name, "--value-column") for name in given] or [name for name in free if name.strip()]
    return ColumnRoles(time, tuple(dict.fromkeys(values)), entity, metric, label, bool(given))


def _column(
    table: CsvTable, told: str | None, usual: tuple[str, ...], option: str, given: tuple[str, ...]
) -> str | None:
    if told is not None:
        return _named(table, told, option)
    by_lower = {name.strip().lower(): name for name in reversed(table.names) if name not in given}
    return next((by_lower[name] for name in usual if name in by_lower), None)


def _named(table: CsvTable, name: str, option: str) -> str:
    if name in table.names:
        return name
    raise unreadable(table.path, f"{option}: there is no column {name!r}", f"one of {', '.join(table.shown)}")
