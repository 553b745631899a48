"""What contributed to joined verdicts: each metric's share, its value, and what was expected of it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import polars as pl

from models.arrays import Array, Flags, Ints
from pipelines.jobs.detect.metrics.context import named

_LEAST_SHARE = 0.01
"""Metrics that contribute less to a joined verdict are not named among its influencers."""


class JudgedMetrics(NamedTuple):
    """For each row that was judged: metric, value, typical value, and whether the value lay within its band."""

    name: pl.Series
    value: Array
    typical: Array
    inside: Flags


def influencers(
    metrics: JudgedMetrics, first: Ints, rows: Ints, shares: Array, suggested: Array, news: Flags
) -> dict[str, pl.Series]:
    """The metrics of each joined verdict that contributed to it, the strongest first; null where none did.

    Args:
        metrics: Of each row that was judged.
        first: The first row of each verdict; its rows stand together, shape (m,).
        rows: Those that went into a verdict, shape (n,).
        shares: The share of each, shape (n,).
        suggested: As of `JoinedVerdicts`, shape (n,).
        news: Which of the verdicts are news: of these more is said, shape (m,).
    """
    by_row = np.argsort(first)
    verdict = by_row[np.searchsorted(first[by_row], rows, side="right") - 1]
    strong = np.flatnonzero(shares >= _LEAST_SHARE)
    strong = strong[np.lexsort((-shares[strong], verdict[strong]))]
    columns = {"influencers": named(verdict[strong], metrics.name[rows[strong]], shares[strong], len(first))}
    strong = strong[news[verdict[strong]]]
    of, at, n = verdict[strong], rows[strong], len(first)
    by_others = np.where(metrics.inside[at], suggested[strong], np.nan)
    numbers = {"actuals": metrics.value[at], "typicals": metrics.typical[at], "suggested": by_others}
    return columns | {name: named(of, metrics.name[at], values, n) for name, values in numbers.items()}
