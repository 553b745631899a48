"""Tells whether verdicts on all windows are stored, or only those that `detector.emit` chooses."""

from __future__ import annotations

import numpy as np
import polars as pl

from pipelines.contracts.records.novelty import QUIET_KINDS

SERIES = ("entity", "metric")
_NEARLY_ALL = 0.9
"""With another `detector.emit` than ``all``, fewer verdicts than this share of windows: some are missing."""
_MUCH_TOO_FEW = 0.5
"""The same with ``all``, where a machine that was off also lacks windows."""


def news_only(verdicts: pl.DataFrame) -> bool:
    """True if only news is stored (ends of incidents aside): `detector.emit` was ``novel``."""
    quiet = pl.col("kind").is_in(QUIET_KINDS) & pl.col("incident_state").is_null()
    return verdicts.height > 0 and not verdicts.select(quiet.any()).item()


def sparse(verdicts: pl.DataFrame, emit: str) -> bool:
    """True if verdicts on quiet windows may be missing, so that a window without one was quiet.

    The setting alone does not tell it: the demo stores all whatever the settings are, and a setting may have been
    another one when the verdicts were written.

    Args:
        verdicts: Columns ``entity``, ``metric``, ``window_start``, ``window_end``, ``kind``, ``incident_state``.
        emit: The setting ``detector.emit`` of the version.
    """
    if news_only(verdicts):
        return True
    return _share(verdicts) < (_MUCH_TOO_FEW if emit == "all" else _NEARLY_ALL)


def _share(verdicts: pl.DataFrame) -> float:
    """The share of the windows of all known series, each from its first to the last of all, that have a verdict."""
    ends = verdicts.sort(*SERIES, "window_end").select(*SERIES, "window_end")
    gaps = ends.select(pl.col("window_end").diff().over(SERIES)).to_series().drop_nulls().to_numpy()
    gaps = gaps[gaps > 0]
    if not len(gaps):
        return 0.0
    lengths, counts = np.unique(gaps, return_counts=True)
    firsts = ends.group_by(SERIES).agg(pl.col("window_end").min())["window_end"].to_numpy()
    last, step = int(ends["window_end"].to_numpy().max()), int(lengths[counts.argmax()])
    return float(verdicts.height / ((last - firsts) // step + 1).sum())
