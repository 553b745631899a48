"""Tells whether verdicts on all windows are stored, or only those that `detector.emit` chooses."""

from __future__ import annotations

import numpy as np
import polars as pl

from pipelines.contracts.records.novelty import QUIET_KINDS

SERIES = ("entity", "metric")
_NEARLY_ALL, _MUCH_TOO_FEW = 0.9, 0.5
"""Below this share of windows verdicts are missing, where not all are asked for, and where they are: a machine that was
off has no windows either, but what was written before the setting became ``all`` holds far fewer."""


def news_only(verdicts: pl.DataFrame) -> bool:
    """True if no verdict is stored that is no news, but for the ends of incidents: `detector.emit` was ``novel``."""
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
