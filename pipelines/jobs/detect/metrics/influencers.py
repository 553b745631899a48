"""The influencers of joined verdicts: the metrics that contributed, with share, value and expected value."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import polars as pl

from models.numbers.arrays import Array, Flags, Ints
from pipelines.jobs.detect.metrics.context import named

_LEAST_SHARE = 0.01
"""The least share of a joined verdict with which a metric is named as an influencer."""


class JudgedMetrics(NamedTuple):
    """For each judged row its metric, value and typical value, and whether the value lies within its band."""

    name: pl.Series
    value: Array
    typical: Array
    inside: Flags


def influencers(
    metrics: JudgedMetrics, first: Ints, rows: Ints, shares: Array, suggested: Array, news: Flags
) -> dict[str, pl.Series]:
    """The metrics that contributed to each joined verdict, the strongest first; null where none did.

    Args:
        metrics: All judged rows.
        first: The first row of each verdict, ascending; the rows of a verdict are adjacent, shape (m,).
        rows: The rows that went into a verdict, shape (n,).
        shares: The share of each of these rows in its verdict, shape (n,).
        suggested: The value that the machine's other metrics suggest, as in `JoinedVerdicts`, shape (n,).
        news: Flags of the verdicts that are news; only these get values and expected values, shape (m,).

    Returns:
        The columns `influencers`, `actuals`, `typicals` and `suggested` of m verdicts, by name.
    """
    verdict = np.searchsorted(first, rows, side="right") - 1
    strong = np.flatnonzero(shares >= _LEAST_SHARE)
    strong = strong[np.lexsort((-shares[strong], verdict[strong]))]
    columns = {"influencers": named(verdict[strong], metrics.name[rows[strong]], shares[strong], len(first))}
    strong = strong[news[verdict[strong]]]
    of, at, n = verdict[strong], rows[strong], len(first)
    by_others = np.where(metrics.inside[at], suggested[strong], np.nan)
    numbers = {"actuals": metrics.value[at], "typicals": metrics.typical[at], "suggested": by_others}
    return columns | {name: named(of, metrics.name[at], values, n) for name, values in numbers.items()}
