"""What a user should know about a file: skipped lines, decisions that were made, or that it cannot be used."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import polars as pl

from datagen.series.column_roles import ColumnRoles
from datagen.series.csv_table import LINE, CsvTable
from datagen.series.report import NAMED, SeriesReport, Skipped
from engine.spec.errors import NewnormalError
from pipelines.contracts.tables.numbers import ACCEPTED
from pipelines.contracts.tables.times import ACCEPTED as TIMES

TIME, ENTITY, METRIC, INSTANCE = "\0time", "\0entity", "\0metric", "\0instance"
"""Columns of `Parsed.rows` besides the values: instant, machine and metric as the file names them, and labels."""

GREATEST = 1e150
"""Values with a greater magnitude are judged as this magnitude, see docs/model.md."""
NUMBERS = f"{ACCEPTED}; see --value-column, --decimal and --separator"

_RAGGED, _NO_TIME, _NO_NAME = "lines with more fields than the header", "lines without a time", "lines without a "
_NO_NUMBER = "values that are no numbers"


@dataclass(frozen=True)
class Parsed:
    """A file whose times and numbers have been read.

    Args:
        table: Its text.
        columns: The meaning of its columns.
        texts: The columns of values as text, null where a value is missing.
        rows: `LINE`, `TIME`, `ENTITY`, `METRIC`, `INSTANCE` and the columns of values as numbers; null where unusable.
        used: The columns of values that are used.
        labels: The columns of text that tell one series from another.
        notes: The decisions made when reading times and numbers.
    """

    table: CsvTable
    columns: ColumnRoles
    texts: pl.DataFrame
    rows: pl.DataFrame
    used: tuple[str, ...]
    labels: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def timed(self) -> pl.Expr:
        """Whether a row has a time, and a machine and a metric if there are columns for them."""
        asked = [TIME, *[ENTITY] * (self.columns.entity is not None), *[METRIC] * (self.columns.metric is not None)]
        return pl.all_horizontal(pl.col(name).is_not_null() for name in asked)

    @property
    def kept(self) -> pl.DataFrame:
        """The rows whose values can be used."""
        return self.rows.filter(self.timed)


def check_usable(parsed: Parsed) -> None:
    """Checks that some line has a time and a number.

    Raises:
        NewnormalError: ``SERIES_EMPTY``, with the first line that cannot be used and its content.
    """
    table, columns = parsed.table, parsed.columns
    if table.frame.is_empty() and table.ragged.is_empty():
        raise _empty(table, "the file has only a header, line 1", "lines below the header")
    kept = parsed.kept
    if any(kept[name].count() for name in columns.values):
        return
    faults = list(_skipped(parsed, columns.values))
    if not faults:
        what = f"no line has a value in {', '.join(columns.values)}; the first is line {table.frame[LINE][0]}"
        raise _empty(table, what, NUMBERS)
    first = min(faults, key=lambda fault: fault.lines[0])
    accepted = {_NO_TIME: TIMES, _NO_NUMBER: NUMBERS, _RAGGED: "as many fields as the header; quotes around 1,5"}
    raise _empty(table, f"nothing can be used; {first}", accepted.get(first.reason, "a name in every line"))


def report(parsed: Parsed, missing: int) -> SeriesReport:
    """The report of a file that can be used, at least in part."""
    table, rows, kept = parsed.table, parsed.rows, parsed.kept
    same = pl.struct(ENTITY, METRIC, INSTANCE)
    steps = kept.select(pl.col(TIME).unique().sort().diff().drop_nulls().over(same, mapping_strategy="explode"))[TIME]
    usual = int(steps.median() or 0)  # type: ignore[arg-type]
    unsorted = kept.select((pl.col(TIME).diff().over(same) < 0).sum()).item()
    return SeriesReport(
        path=str(table.path),
        rows=rows.height + table.ragged.height,
        bad_times=rows[TIME].null_count(),
        missing=missing,
        unsorted=unsorted,
        duplicates=kept.height - kept.select(TIME, ENTITY, METRIC, INSTANCE).unique().height,
        irregular=int((steps != usual).sum()),
        step_ms=usual,
        machines=tuple(kept[ENTITY].drop_nulls().unique().sort()),
        skipped=tuple(_skipped(parsed, parsed.used)),
        notes=tuple(_notes(parsed)),
    )


def _empty(table: CsvTable, why: str, accepted: str) -> NewnormalError:
    return NewnormalError("SERIES_EMPTY", why, str(table.path), accepted, "the file was not read")


def _skipped(parsed: Parsed, used: tuple[str, ...]) -> Iterator[Skipped]:
    table, columns, rows = parsed.table, parsed.columns, parsed.rows
    if table.ragged.height:
        yield Skipped(_RAGGED, table.ragged.height, *_where(table.ragged, "\0rest"))
    asked = {TIME: (_NO_TIME, columns.time)}
    asked |= {
        key: (f"{_NO_NAME}{name}", name) for key, name in ((ENTITY, columns.entity), (METRIC, columns.metric)) if name
    }
    for key, (what, name) in asked.items():
        lacking = table.frame.filter(rows[key].is_null())
        if lacking.height:
            yield Skipped(what, lacking.height, *_where(lacking, name))
    wrong = [
        rows.select(LINE, text=parsed.texts[name])
        .filter(rows.select(parsed.timed & pl.col(name).is_null()).to_series())
        .drop_nulls("text")
        for name in used
    ]
    values = pl.concat(wrong).sort(LINE, maintain_order=True)
    if values.height:
        yield Skipped(_NO_NUMBER, values.height, *_where(values, "text"))


def _where(rows: pl.DataFrame, column: str) -> tuple[tuple[int, ...], str]:
    return tuple(rows[LINE].unique(maintain_order=True)[: NAMED + 1]), rows[column][0] or ""


def _notes(parsed: Parsed) -> Iterator[str]:
    table, columns, kept = parsed.table, parsed.columns, parsed.kept
    if table.separator != ",":
        yield f"columns are separated by {'tabs' if table.separator == chr(9) else table.separator}"
    if columns.entity:
        yield f"column {columns.entity} names {kept[ENTITY].n_unique()} machines"
    if columns.metric:
        yield f"column {columns.metric} names {kept[METRIC].n_unique()} metrics"
    yield from parsed.notes
    if parsed.labels:
        yield f"columns that tell series apart: {', '.join(parsed.labels)}"
    left = [name for name in columns.values if name not in (*parsed.used, *parsed.labels)]
    if left:
        yield f"columns left out, as they hold no numbers: {', '.join(left)}"
    great = [name for name in parsed.used if (kept[name].abs() > GREATEST).any()]
    if great:
        first = kept.filter(pl.any_horizontal(pl.col(great).abs() > GREATEST))[LINE][0]
        yield f"values beyond ±{GREATEST:g} are judged as ±{GREATEST:g}, the first in line {first}"
