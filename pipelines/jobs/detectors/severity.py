"""The severity of verdicts: their score in a word, written when all rules have been applied."""

from __future__ import annotations

import polars as pl

from pipelines.contracts.records.severity import SEVERITIES, STEP


def graded(verdicts: pl.DataFrame) -> pl.DataFrame:
    """Adds the column ``severity``; a ``state_score`` that an earlier version did not keep becomes 0.

    Args:
        verdicts: A row per verdict, with the column ``record_score`` and perhaps ``state_score``.

    >>> graded(pl.DataFrame({"record_score": [0.0, 24.9, 25.0, 75.0, 100.0]}))["severity"].to_list()
    ['warning', 'warning', 'minor', 'critical', 'critical']
    """
    place = (verdicts["record_score"] / STEP).cast(pl.UInt8).clip(0, len(SEVERITIES) - 1)
    severity = pl.Series("severity", SEVERITIES, dtype=pl.String).gather(place)
    return verdicts.with_columns(severity, pl.col("^state_score$").fill_null(0.0))
