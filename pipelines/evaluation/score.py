"""Scores recorded files with the production detector: strictly online, without Kafka or Spark.

Each row of a file is one window of one metric of one machine. The streaming detector uses the same code.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from datagen.series import USUAL, Reading, SeriesReport, read_files
from pipelines.contracts.settings import DetectorSettings
from pipelines.evaluation.on_cores import judge_on_cores
from pipelines.evaluation.recorded import Progress
from pipelines.jobs.detectors.severity import graded

COLUMNS = (
    "time",
    "entity",
    "metric",
    "actual",
    "typical",
    "lower",
    "upper",
    "record_score",
    "kind",
    "state_score",
    "severity",
)
"""The columns of the result."""


def score_files(
    paths: Sequence[Path],
    settings: DetectorSettings,
    reading: Reading = USUAL,
    progress: Progress = lambda _done, _total: None,
) -> tuple[pl.DataFrame, tuple[SeriesReport, ...]]:
    """Judges every value of the files, also missing ones; machines with several metrics also get joined verdicts.

    If a metric has several values at one time, each is judged, in the order of the file. Each machine is judged as if
    it were alone, so many values are judged on all cores.

    Args:
        paths: CSV files and folders of them, see `read_files`.
        settings: The detector's settings.
        reading: How the files are read.
        progress: See `Progress`.

    Returns:
        The verdicts, with the columns `COLUMNS` (time in epoch milliseconds), in order of machine, time and metric; and
        a report on each file. The figures never depend on later rows. The column ``kind`` does: it is the kind of the
        last revision, so the worst window of an incident has the kind that was decided later.

    Raises:
        NewnormalError: ``SERIES_UNREADABLE`` or ``SERIES_EMPTY`` if nothing of the files can be used.
    """
    series, reports = read_files(paths, reading, keep_missing=True)
    values = series.select("entity", "metric", "time", "value")
    verdicts = graded(judge_on_cores(values, settings, progress))
    return verdicts.select(time="window_end").hstack(verdicts.select(COLUMNS[1:])), reports


def write_csv(verdicts: pl.DataFrame, out: Path) -> None:
    """Writes verdicts as CSV; times are RFC 3339 text in UTC, scores have all their digits."""
    text = pl.from_epoch("time", time_unit="ms").dt.strftime("%Y-%m-%dT%H:%M:%S%.3fZ")
    verdicts.with_columns(time=text).write_csv(out)
