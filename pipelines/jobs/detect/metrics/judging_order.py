"""Order of judging: the rows of a frame in steps, each of which is judged and learned at once."""

from __future__ import annotations

import numpy as np

from engine.columns.packing import LARGEST, ordered
from models.arrays import Ints


def judging_order(series: Ints, entity: Ints, window_end: Ints) -> tuple[Ints, Ints]:
    """Puts rows into steps: a step holds one window end of each entity, and one row of each series.

    Step k holds the k-th window end of each entity. Entities are judged independently of one another, so it makes no
    difference whether their clocks agree, and recorded series of different years are judged side by side.

    Args:
        series: Number of each row's series, in the order in which series of an entity are judged.
        entity: Number of its entity.
        window_end: Epoch milliseconds. Rows of one series and window keep the order in which they came.

    Returns:
        The rows in order of judging, and the number of the step of each in that order.

    >>> series, entity, window_end = np.array([0, 1, 0, 2]), np.array([0, 0, 0, 1]), np.array([20, 10, 10, 99])
    >>> judging_order(series, entity, window_end)
    (array([2, 1, 3, 0]), array([0, 0, 0, 1]))
    """
    first = _sorted(window_end, series)
    again = _count(first, series, window_end)
    by_entity = _sorted(entity, window_end, again)
    rank = np.empty(len(series), np.int64)
    rank[by_entity] = _dense(by_entity, entity, (window_end, again))
    order = _sorted(rank, series)
    return order, np.cumsum(_begins(order, rank)) - 1


def _sorted(*columns: Ints) -> Ints:
    """The order that sorts rows by some columns, the first column first; equal rows keep their order."""
    room, codes = 1, np.zeros(len(columns[0]), np.int64)
    for column in columns:
        low, high = (int(column.min()), int(column.max())) if len(column) else (0, 0)
        span = high - low + 1
        room *= span
        if room > LARGEST:
            return np.lexsort(columns[::-1])
        codes = codes * span + (column - low)
    return ordered(codes.astype(np.uint64))[0]


def _begins(order: Ints, *columns: np.ndarray) -> np.ndarray:
    """Flags the rows that differ from the previous row, in the given order, in at least one column."""
    begins = np.zeros(len(order), dtype=np.bool_)
    begins[:1] = True
    for column in columns:
        ordered = column[order]
        begins[1:] |= ordered[1:] != ordered[:-1]
    return begins


def _count(order: Ints, *columns: np.ndarray) -> Ints:
    """For each row: how many earlier rows, in the given order, agree with it in all columns; those are adjacent."""
    begins = _begins(order, *columns)
    places = np.arange(len(order))
    count = np.empty(len(order), np.int64)
    count[order] = places - np.maximum.accumulate(np.where(begins, places, 0))
    return count


def _dense(order: Ints, group: np.ndarray, columns: tuple[np.ndarray, ...]) -> Ints:
    """Numbers the runs of rows that agree in all columns, in the given order, from 0 in each group."""
    steps = np.cumsum(_begins(order, group, *columns))
    starts = np.flatnonzero(_begins(order, group))
    sizes = np.diff(np.append(starts, len(order)))
    numbers: Ints = steps - np.repeat(steps[starts], sizes)
    return numbers
