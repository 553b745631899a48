"""Session merging: overlapping spans of a key, those of records and of open windows, become one window."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from engine.operators.windows import BOUNDS
from engine.vectorized.windows.partials import WINDOW

START, END = BOUNDS
_OLD, _RECORD = "__old", "__record"


@dataclass(frozen=True)
class MergedSessions:
    """The open windows after some records have come.

    Attributes:
        windows: The windows; the number of a window is its row.
        moved: For each window before, its new number.
        number: For each record, the number of its window.
    """

    windows: pl.DataFrame
    moved: npt.NDArray[np.int64]
    number: pl.Series


def merge_sessions(
    windows: pl.DataFrame, opened: pl.DataFrame, key: Sequence[str], merged: Mapping[str, pl.Expr]
) -> MergedSessions:
    """Merges the spans that records open with the open windows of their keys.

    Args:
        windows: The open windows, one a row, with ``key``, start, end and further columns.
        opened: For each record, the window that it would open by itself, with the same columns.
        key: The key columns.
        merged: Expressions that merge the further columns of several windows into those of one.
    """
    names, keys = windows.columns, opened.select(key).unique()
    before = windows.with_row_index(_OLD).with_columns(pl.lit(None, pl.Int64).alias(_RECORD))
    touched = before.join(keys, on=key, how="semi", nulls_equal=True)
    rest = before.join(keys, on=key, how="anti", nulls_equal=True, maintain_order="left")
    new = opened.with_row_index(_RECORD).with_columns(pl.lit(None, pl.UInt32).alias(_OLD))
    rows = pl.concat([touched, new.select(touched.columns)], how="vertical_relaxed").sort(*key, START, END)
    reach = pl.col(END).cum_max().shift(1).over(key)
    first = reach.is_null() | (pl.col(START) >= reach)
    rows = rows.with_columns((first.cum_sum().cast(pl.Int64) - 1 + rest.height).alias(WINDOW))
    columns = {**merged, START: pl.col(START).min(), END: pl.col(END).max(), **{k: pl.col(k).first() for k in key}}
    sessions = rows.group_by(WINDOW).agg(e.alias(n) for n, e in columns.items()).sort(WINDOW)
    moved = np.full(windows.height, -1, np.int64)
    moved[rest[_OLD].to_numpy()] = np.arange(rest.height)
    was = rows.filter(pl.col(_OLD).is_not_null())
    moved[was[_OLD].to_numpy()] = was[WINDOW].to_numpy()
    number = rows.filter(pl.col(_RECORD).is_not_null()).sort(_RECORD)[WINDOW]
    after = pl.concat([rest.select(names), sessions.select(names)], how="vertical_relaxed")
    return MergedSessions(after, moved, number)
