"""Rounds: round i holds the i-th record of each key, so that one step for many keys is one array operation.

A micro-batch takes as many rounds as its busiest key has records.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import polars as pl

from engine.columns.arrays import Ints

_CODE, _ROW = "__sequence", "__row"


def in_order(records: pl.DataFrame, codes: Ints, time: str) -> tuple[pl.DataFrame, Ints]:
    """Records and codes, sorted by code and time; ties by the values of all columns, in order of their names.

    >>> frame, codes = in_order(pl.DataFrame({"time": [2, 1, 1], "v": [0, 9, 8]}), np.array([0, 0, 0]), "time")
    >>> frame["v"].to_list()
    [8, 9, 0]
    """
    times = records[time].to_numpy()
    order = np.lexsort((times, codes))
    same = (np.diff(codes[order]) == 0) & (np.diff(times[order]) == 0)
    if same.any():
        tied = np.concatenate([same, [False]]) | np.concatenate([[False], same])
        order[tied] = _by_values(records[order[tied]], codes[order[tied]], time, order[tied])
    return records[order], codes[order]


def _by_values(records: pl.DataFrame, codes: Ints, time: str, rows: Ints) -> Ints:
    """The given rows, sorted by code, time and the values of all columns."""
    others = sorted(name for name in records.columns if name != time)
    frame = records.with_columns(pl.Series(_CODE, codes), pl.Series(_ROW, rows))
    return frame.sort(_CODE, time, *others)[_ROW].to_numpy()


def rounds(codes: Ints) -> Iterator[Ints]:
    """Yields the positions of the first record of each code, then of the second ones, and so on.

    Args:
        codes: The codes, ascending.

    >>> [positions.tolist() for positions in rounds(np.array([0, 0, 0, 3, 7, 7]))]
    [[0, 3, 4], [1, 5], [2]]
    """
    if not len(codes):
        return
    first = np.flatnonzero(np.concatenate([[True], codes[1:] != codes[:-1]]))
    sizes = np.diff(np.concatenate([first, [len(codes)]]))
    rank = np.arange(len(codes)) - np.repeat(first, sizes)
    order = np.argsort(rank, kind="stable")
    yield from np.split(order, np.cumsum(np.bincount(rank))[:-1])
