"""A comparison as plain data for the console: its sentences, its tables, and the series around each difference."""

from __future__ import annotations

from typing import Any

import polars as pl

from pipelines.evaluation.comparison.alarms import OUTCOMES, counts
from pipelines.evaluation.comparison.comparison import GROUPS, Comparison, Difference, around
from pipelines.evaluation.comparison.words import called, compared, figure, headline, incidents, quality

ROWS = 20
"""The most rows of each table of alarms."""

_MARGIN, _LONGEST = 60, 240
"""Windows that are shown before and after an alarm, and the most windows of an alarm."""

_POINT = ("actual", "typical", "lower", "upper", "record_score", "kind")


def plain_data(comparison: Comparison, unreadable: int, now: int) -> dict[str, Any]:
    """The comparison as plain data.

    Args:
        comparison: The comparison.
        unreadable: How many messages could not be read.
        now: When it was made, epoch milliseconds.

    Returns:
        ``versions``, ``at``, ``incidents`` (``summary``, ``rows`` and ``only``, texts), ``headline``,
        ``sentences``, ``tables`` (of each ``by``, ``rows`` and ``more``, the number
        of rows that are left out), ``outcomes`` (the last columns of each row), ``quality`` (``rows`` and ``notes``),
        and ``differences``: of each the alarm, the ``reasons``, and for both versions the ``points`` around it.
    """
    rows, notes = quality(comparison)
    summary, numbers, only = incidents(comparison)
    sentences = compared(comparison)
    if unreadable:
        sentences.append(f"{unreadable:,} messages could not be read and are left out.")
    return {
        "versions": [version.name for version in comparison.versions],
        "at": now,
        "incidents": {"summary": summary, "rows": [[*map(figure, row)] for row in numbers], "only": only},
        "headline": headline(comparison),
        "sentences": sentences,
        "outcomes": list(OUTCOMES),
        "tables": [_table(comparison, by) for by in GROUPS],
        "quality": {"rows": [[*map(figure, row)] for row in rows], "notes": notes},
        "differences": [_difference(comparison, each) for each in comparison.differences],
    }


def _table(comparison: Comparison, by: str) -> dict[str, Any]:
    table = counts(comparison.alarms, by)
    rows = [[called(str(row[0])) if by == "kind" else row[0], *row[1:]] for row in table.head(ROWS).rows()]
    return {"by": GROUPS[by], "rows": rows, "more": table.height - len(rows)}


def _difference(comparison: Comparison, difference: Difference) -> dict[str, Any]:
    alarm, step = difference.alarm, comparison.times.step
    shown = {**alarm, "end": min(alarm["end"], alarm["start"] + _LONGEST * step)}
    versions = [
        {"version": version.name, "reason": reason, "points": _points(around(version.verdicts, shown, _MARGIN * step))}
        for version, reason in zip(comparison.versions, difference.reasons, strict=True)
    ]
    names = ("entity", "metric", "start", "end", "outcome", "kind0", "kind1", "highest0", "highest1")
    span = [alarm["start"] - _MARGIN * step, shown["end"] + _MARGIN * step]
    return {**{name: alarm[name] for name in names}, "span": span, "versions": versions}


def _points(verdicts: pl.DataFrame) -> list[dict[str, Any]]:
    return verdicts.sort("window_end").select(pl.col("window_end").alias("@timestamp"), *_POINT).to_dicts()
