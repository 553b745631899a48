"""What a savepoint holds of one series, or of those of a machine, in words; `of_series` has the rows themselves."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import isfinite
from typing import Any

import polars as pl

from engine.spec.duration import NEVER, iso

_MODEL, _WINDOW, _JOURNAL = {"seen", "time"}, ".last_time", "inputs"
_SERIES = 20
"""The most series of a machine of which each has a line."""

Found = Sequence[tuple[str, pl.DataFrame]]
"""Titles and rows of tables, as `pipelines.savepoints.inspection.of_series` yields them."""


def in_words(job: str, tables: Found) -> list[str]:
    """What a job knows of a series, a line for each thing.

    Args:
        job: Name of the job.
        tables: The tables of its state, each with the rows of the series.
    """
    models = [table for _, table in tables if set(table.columns) >= _MODEL]
    open_ = [(table, name) for _, table in tables for name in table.columns if name.endswith(_WINDOW)]
    journal = [table for title, table in tables if title.endswith(f" {_JOURNAL}")]
    lines = [*_models(models), *_windows(open_), *_kept(journal)]
    known = {id(table) for table in (*models, *(table for table, _ in open_), *journal)}
    rest = [table for _, table in tables if id(table) not in known]
    if not lines and rest:
        lines = [
            f"{sum(table.height for table in rest):,} rows in {len(rest):,} tables of its state; --json shows them"
        ]
    return [f"{job}: {line}" for line in lines]


def _models(tables: Iterable[pl.DataFrame]) -> list[str]:
    """What the detector has learned of each series: of several times the last one counts."""
    newest: dict[str, dict[str, Any]] = {}
    for table in tables:
        for row in table.to_dicts():
            name = str(row.get("metric", "the machine"))
            if name not in newest or _at(newest[name]["time"]) <= _at(row["time"]):
                newest[name] = row
    lines = [_model(name, row) for name, row in sorted(newest.items())]
    more = [f"{len(lines) - _SERIES:,} more series"] if len(lines) > _SERIES else []
    return lines[:_SERIES] + more


def _model(metric: str, row: dict[str, Any]) -> str:
    learned = f"{metric} has {row['seen'] or 0:,.0f} windows learned"
    if _at(row.get("said.at")) <= NEVER:
        return learned
    typical, lower, upper, score = (row.get(f"said.{name}") for name in ("typical", "lower", "upper", "score"))
    numbers = all(map(_is_number, (typical, lower, upper)))
    usual = f", usual {typical:.4g}, expected from {lower:.4g} to {upper:.4g}" if numbers else ""
    last = f", score {score:.0f}" if _is_number(score) else ""
    return f"{learned}; told last for the window that ends at {iso(row['said.at'])}{usual}{last}"


def _at(instant: int | None) -> int:
    """An instant that may not be known: a column that an older release did not have is null."""
    return NEVER if instant is None else instant


def _is_number(value: Any) -> bool:
    return isinstance(value, float) and isfinite(value)


def _windows(tables: Sequence[tuple[pl.DataFrame, str]]) -> list[str]:
    """The windows that are open, or kept for late records, and the newest value in them."""
    if not tables:
        return []
    rows = [(row[time], row.get(f"{time.removesuffix('_time')}")) for table, time in tables for row in table.to_dicts()]
    count = f"{len(tables):,} windows are open or kept for late records"
    at, value = max(((_at(time), value) for time, value in rows), key=lambda each: each[0], default=(NEVER, None))
    if at <= NEVER:
        return [count]
    newest = f", {value:.4g}" if _is_number(value) else ""
    return [f"{count}; the newest value is of {iso(at)}{newest}"]


def _kept(tables: Iterable[pl.DataFrame]) -> list[str]:
    """The windows with which the detector judges again if a late one comes."""
    number = sum(table.height for table in tables)
    return [f"{number:,} judged windows are kept, to judge again if a late one comes"] if number else []
