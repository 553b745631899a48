"""Scores a recorded file with the production detector: strictly online, without Kafka or Spark.

A row of the file is one window of one metric of one machine; the code path is that of the streaming detector.
"""

from __future__ import annotations

from pathlib import Path

import polars as pl

from datagen.series import SeriesReport, read_series
from pipelines.evaluation.recorded import judge
from pipelines.settings import DetectorSettings

ENTITY = "file"
"""The machine that a file is taken for."""

COLUMNS = ("time", "metric", "actual", "typical", "lower", "upper", "record_score", "kind")
"""Columns of the result."""


def score_file(path: Path, settings: DetectorSettings) -> tuple[pl.DataFrame, SeriesReport]:
    """A verdict for every row of a file by time, missing ones too; of several metrics also a joint one (`_machine`).

    Of several values of one metric at one time each is judged, in the order of the file.

    Args:
        path: A CSV file: a time column and one or more columns of values; label columns are ignored.
        settings: The detector's settings.

    Returns:
        Columns `COLUMNS` (time in epoch milliseconds), and what was remarkable about the file.

    Raises:
        NewnormalError: ``SERIES_UNREADABLE`` if the file cannot be read.
    """
    series, report = read_series(path, keep_missing=True)
    return score_series(series, settings), report


def score_series(series: pl.DataFrame, settings: DetectorSettings) -> pl.DataFrame:
    """Verdicts on the values of one machine.

    Args:
        series: Columns ``time`` (epoch milliseconds), ``metric``, ``value``.
        settings: The detector's settings.

    Returns:
        Columns `COLUMNS`, in order of time and metric.
    """
    verdicts = judge(series.select("time", "metric", "value", entity=pl.lit(ENTITY)), settings)
    return verdicts.select(time="window_end").hstack(verdicts.select(COLUMNS[1:]))


def write_csv(verdicts: pl.DataFrame, out: Path) -> None:
    """Writes verdicts as CSV; time as RFC 3339 text in UTC, scores with all their digits."""
    text = pl.from_epoch("time", time_unit="ms").dt.strftime("%Y-%m-%dT%H:%M:%S%.3fZ")
    verdicts.with_columns(time=text).write_csv(out)
