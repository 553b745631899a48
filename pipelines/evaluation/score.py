"""Scores recorded files with the production detector: strictly online, without Kafka or Spark.

A row of a file is one window of one metric of one machine; the code path is that of the streaming detector.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from datagen.series import USUAL, Reading, SeriesReport, read_files
from pipelines.contracts.settings import DetectorSettings
from pipelines.evaluation.recorded import judge

COLUMNS = ("time", "entity", "metric", "actual", "typical", "lower", "upper", "record_score", "kind")
"""Columns of the result."""


def score_files(
    paths: Sequence[Path], settings: DetectorSettings, reading: Reading = USUAL
) -> tuple[pl.DataFrame, tuple[SeriesReport, ...]]:
    """A verdict for every value of the files, missing ones too; of several metrics of a machine also a joint one.

    Of several values of one metric at one time each is judged, in the order of the file. Each machine is judged as if
    it were alone.

    Args:
        paths: CSV files and folders of them, see `read_files`.
        settings: The detector's settings.
        reading: What the user said of the files.

    Returns:
        Columns `COLUMNS` (time in epoch milliseconds), in order of machine, time and metric; and what was remarkable
        about each file. Figures never depend on later rows; ``kind`` is the last revision, so that of an incident's
        worst window says what the incident turned out to be.

    Raises:
        NewnormalError: ``SERIES_UNREADABLE`` or ``SERIES_EMPTY`` if nothing of the files can be used.
    """
    series, reports = read_files(paths, reading, keep_missing=True)
    verdicts = judge(series.select("entity", "metric", "time", "value"), settings)
    return verdicts.select(time="window_end").hstack(verdicts.select(COLUMNS[1:])), reports


def write_csv(verdicts: pl.DataFrame, out: Path) -> None:
    """Writes verdicts as CSV; time as RFC 3339 text in UTC, scores with all their digits."""
    text = pl.from_epoch("time", time_unit="ms").dt.strftime("%Y-%m-%dT%H:%M:%S%.3fZ")
    verdicts.with_columns(time=text).write_csv(out)
