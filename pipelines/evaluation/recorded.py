"""Judges recorded series with the production detector, all series of a data set side by side."""

from __future__ import annotations

from collections.abc import Callable

import polars as pl

from pipelines.contracts.records.novelty import JOINED
from pipelines.contracts.settings import DetectorSettings
from pipelines.jobs.detectors.metrics.detection import Detection
from pipelines.jobs.detectors.worst import last_revisions

Progress = Callable[[int, int], None]
"""Is called with how many values are judged, and how many there are."""

_ROWS = 100_000
"""About how many values are judged between two reports of progress."""


def judge(
    values: pl.DataFrame,
    settings: DetectorSettings,
    progress: Progress = lambda _done, _total: None,
    detection: Detection | None = None,
) -> pl.DataFrame:
    """Judges the values of any number of machines strictly online, each as if it were alone.

    Verdicts on absence are left out.

    Args:
        values: Columns ``entity``, ``metric``, ``time`` (epoch milliseconds), ``value``.
        settings: The detector's settings.
        progress: See `Progress`.
        detection: Judges the values; ``None``: a detection with the settings.

    Returns:
        Verdicts with the columns of `pipelines.jobs.detectors.metrics.detection.SCHEMA`, in order of machine, end of
        the window and metric.
    """
    detection = detection or Detection(settings)
    state = detection.new_state()
    frame = values.sort("entity", "time", maintain_order=True).with_columns(
        _step=pl.col("time").rle_id().over("entity"), window_start="time", window_end="time"
    )
    last = int(frame["_step"].to_numpy().max(initial=0))
    many = max(1, _ROWS * (last + 1) // max(frame.height, 1))
    parts, done = [], 0
    for first in range(0, last + 1, many):
        part = frame.filter(pl.col("_step").is_between(first, first + many - 1)).drop("_step", "time")
        verdicts, state = detection.process(part, state)
        parts.append(verdicts)
        done += part.height
        progress(done, frame.height)
    verdicts = last_revisions(pl.concat(parts)).sort("entity", "window_end", "metric", maintain_order=True)
    asked = values.select("entity", "metric", window_end="time").unique()
    whole = asked.select("entity", "window_end", metric=pl.lit(JOINED)).unique().select(asked.columns)
    return verdicts.join(pl.concat([asked, whole]), on=asked.columns, how="semi", maintain_order="left")
