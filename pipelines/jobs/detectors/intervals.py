"""Intervals of event time of series, as frames: which windows of which series lie in one of them.

An interval holds the windows that end in (``low``, ``high``], epoch milliseconds.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from models.numbers.arrays import Flags

SERIES = ("entity", "metric")
NO_INTERVALS = pl.DataFrame(schema=dict.fromkeys(SERIES, pl.String) | dict.fromkeys(("low", "high"), pl.Int64))


def union(*intervals: pl.DataFrame) -> pl.DataFrame:
    """The union of intervals, as disjoint intervals sorted by series and time.

    >>> some = pl.DataFrame([("a", "m", 0, 5), ("b", "m", 0, 5), ("a", "m", 7, 9), ("a", "m", 2, 6)],
    ...     NO_INTERVALS.schema, orient="row")
    >>> union(some).rows()
    [('a', 'm', 0, 6), ('a', 'm', 7, 9), ('b', 'm', 0, 5)]
    """
    whole = pl.concat([each.select(NO_INTERVALS.columns) for each in intervals])
    if whole.height < 2:
        return whole
    until = pl.col("high").cum_max().shift(1).over(SERIES)
    whole = whole.sort(*SERIES, "low").with_columns(_group=(pl.col("low") > until).fill_null(True).cum_sum())
    first = pl.col(*SERIES, "low").first()
    return whole.group_by("_group", maintain_order=True).agg(first, pl.col("high").max()).drop("_group")


def inside(windows: pl.DataFrame, intervals: pl.DataFrame) -> Flags:
    """For each window whether it lies in one of its series' intervals; shape (n,).

    Args:
        windows: Columns of `SERIES` and ``window_end``.
        intervals: Disjoint intervals, as from `union`.
    """
    flags = np.zeros(windows.height, np.bool_)
    if windows.height and intervals.height:
        rows = windows.select(*SERIES, "window_end").with_row_index("_row")
        rows = rows.join(intervals, on=SERIES, how="semi").sort("window_end")
        last = rows.join_asof(
            intervals.sort("low"),
            left_on="window_end",
            right_on="low",
            by=list(SERIES),
            strategy="backward",
            allow_exact_matches=False,
            check_sortedness=False,
        )
        flags[last.filter(pl.col("window_end") <= pl.col("high"))["_row"].to_numpy()] = True
    return flags
