"""Reads recorded series from CSV: one time column, one or several value columns, a label column ignored.

Accepts what the public data sets use (NAB's ``timestamp,value``, Microsoft's ``TimeStamp,Value,Label``) and wide files
with a metric a column. Knows nothing of Kafka, nor of what the values are used for.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import polars as pl

from engine.errors import NewnormalError

_TIMES = ("time", "timestamp", "@timestamp", "datetime", "date")
_LABELS = ("label", "is_anomaly", "anomaly", "labels")
_FORMATS = ("%Y-%m-%d %H:%M:%S%.f", "%Y-%m-%d %H:%M", "%Y-%m-%d", "%m/%d/%Y %H:%M:%S", "%m/%d/%Y %H:%M")
_EPOCHS = ((1e17, 1e-6), (1e14, 1e-3), (1e11, 1.0), (0.0, 1e3))  # from this size on: ns, µs, ms, s; and the ms in one


@dataclass(frozen=True)
class SeriesReport:
    """What was remarkable about a file.

    Args:
        path: The file.
        rows: Rows below the header.
        bad_times: Rows skipped because their time is missing or no time.
        missing: Values skipped because they are empty, no number, or not finite.
        unsorted: Rows whose time lies before that of the row above.
        duplicates: Rows whose time was there already.
        irregular: Steps between neighbouring times that differ from the usual one.
        step_ms: The usual step: the median; 0 of fewer than two times.
    """

    path: str
    rows: int
    bad_times: int = 0
    missing: int = 0
    unsorted: int = 0
    duplicates: int = 0
    irregular: int = 0
    step_ms: int = 0

    def __str__(self) -> str:
        faults = {
            "rows without a time": self.bad_times,
            "missing values": self.missing,
            "rows out of order": self.unsorted,
            "duplicate times": self.duplicates,
            "irregular steps": self.irregular,
        }
        found = [f"{count} {what}" for what, count in faults.items() if count]
        return f"{self.path}: {self.rows} rows, step {self.step_ms / 1000:g} s; {', '.join(found) or 'no faults'}"


def read_series(path: str | Path, *, keep_missing: bool = False) -> tuple[pl.DataFrame, SeriesReport]:
    """The values of a CSV file, in order of time.

    Args:
        path: A CSV file with a header. Time is ISO 8601 (UTC unless it says otherwise) or a Unix epoch (s, ms, µs, ns).
        keep_missing: Whether a missing value is a row with null; else it is left out.

    Returns:
        Columns ``time`` (int64, epoch milliseconds), ``metric`` (the name of the value's column) and ``value``
        (float64, finite or null), one row a value, sorted by time, else in the order of the file; duplicate times are
        kept. And the report.

    Raises:
        NewnormalError: ``SERIES_UNREADABLE`` if the file cannot be read or has no time or no value column.
    """
    raw = _read(Path(path))
    time = _column(raw, _TIMES)
    metrics = [name for name in raw.columns if name != time and name.strip().lower() not in _LABELS]
    if time is None or not metrics:
        lacking = "time column" if time is None else "value column"
        raise _unreadable(path, f"no {lacking} among {', '.join(raw.columns)}")
    wide = raw.select(_time_ms(raw[time]).alias("\0time"), *(_value(name) for name in metrics))
    timed = wide.filter(pl.col("\0time").is_not_null())
    if timed.is_empty() and raw.height:
        raise _unreadable(path, f"no time in column {time!r} could be read, e.g. {raw[time][0]!r}")
    long = timed.unpivot(metrics, index="\0time", variable_name="metric", value_name="\0value")
    frame = long.rename({"\0time": "time", "\0value": "value"}).sort("time", maintain_order=True)
    missing = frame["value"].null_count()
    return frame if keep_missing else frame.drop_nulls("value"), _report(
        str(path), raw.height, timed["\0time"], missing
    )


def read_labels(path: str | Path) -> pl.DataFrame | None:
    """The label column of a CSV file as of `read_series`; ``None`` if it has none.

    Returns:
        Columns ``time`` (int64, epoch milliseconds) and ``label`` (bool), sorted by time.

    Raises:
        NewnormalError: ``SERIES_UNREADABLE`` if the file cannot be read.
    """
    raw = _read(Path(path))
    time, label = _column(raw, _TIMES), _column(raw, _LABELS)
    if time is None or label is None:
        return None
    text = raw[label].str.strip_chars().str.to_lowercase()
    marked = text.is_in(["true", "yes"]) | (text.cast(pl.Float64, strict=False).fill_null(0.0) > 0)
    frame = pl.DataFrame({"time": _time_ms(raw[time]), "label": marked})
    return frame.drop_nulls("time").sort("time", maintain_order=True)


def _read(path: Path) -> pl.DataFrame:
    try:
        return pl.read_csv(path, infer_schema=False, truncate_ragged_lines=True)
    except (OSError, pl.exceptions.PolarsError) as error:
        raise _unreadable(path, str(error).splitlines()[0]) from None


def _unreadable(path: str | Path, why: str) -> NewnormalError:
    accepted = f"a CSV file with a header, a column named {', '.join(_TIMES)} and one or more columns of numbers"
    return NewnormalError("SERIES_UNREADABLE", why, str(path), accepted, "the file was not read")


def _column(raw: pl.DataFrame, names: tuple[str, ...]) -> str | None:
    by_lower = {name.strip().lower(): name for name in reversed(raw.columns)}
    return next((by_lower[name] for name in names if name in by_lower), None)


def _value(name: str) -> pl.Expr:
    number = pl.col(name).str.strip_chars().cast(pl.Float64, strict=False)
    return pl.when(number.is_finite()).then(number).alias(name)


def _time_ms(text: pl.Series) -> pl.Series:
    text = text.str.strip_chars()
    number = text.cast(pl.Float64, strict=False)
    if text.len() and number.null_count() <= text.len() // 2:
        size = abs(float(number.median() or 0.0))  # type: ignore[arg-type]
        factor = next(factor for least, factor in _EPOCHS if size >= least)
        return (number * factor).round().cast(pl.Int64, strict=False)
    plain = pl.col("t").str.replace("T", " ", literal=True).str.replace(r"\s*(?:Z|UTC)$", "")
    naive = [plain.str.to_datetime(form, time_unit="ms", strict=False).dt.replace_time_zone("UTC") for form in _FORMATS]
    offset = [
        plain.str.to_datetime(form + "%#z", time_unit="ms", time_zone="UTC", strict=False)
        for form in ("%Y-%m-%d %H:%M:%S%.f", "%Y-%m-%d %H:%M")
    ]
    return text.alias("t").to_frame().select(pl.coalesce(*naive, *offset).dt.epoch("ms")).to_series()


def _report(path: str, rows: int, times: pl.Series, missing: int) -> SeriesReport:
    steps = times.unique().sort().diff().drop_nulls()
    usual = int(steps.median() or 0)  # type: ignore[arg-type]
    return SeriesReport(
        path=path,
        rows=rows,
        bad_times=rows - times.len(),
        missing=missing,
        unsorted=int((times.diff() < 0).sum()),
        duplicates=times.len() - times.n_unique(),
        irregular=int((steps != usual).sum()),
        step_ms=usual,
    )
