"""The order of judging: divides the rows of a frame into steps, which are judged one after the other."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from engine.columns.packing import LARGEST, ordered
from models.numbers.arrays import Ints


def judging_order(series: Ints, entity: Ints, window_end: Ints) -> tuple[Ints, Ints]:
    """Divides rows into steps: a step has one window end of each machine, and at most one row of each series.

    Step k has the k-th window end of each machine. Machines are judged independently of one another, so their clocks
    need not agree: recorded series of different years are judged side by side.

    Args:
        series: Number of each row's series; series of a machine are judged in the order of these numbers, shape (n,).
        entity: Number of each row's machine, shape (n,).
        window_end: End of each row's window, epoch milliseconds; rows of one series and window keep their order.

    Returns:
        The indices of the rows in the order of judging, and for each of them, in that order, the number of its step.

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


def steps(step: Ints) -> Iterator[slice]:
    """The places of the rows of each step, from the first step to the last.

    Args:
        step: The number of the step of each row, ascending.

    >>> list(steps(np.array([0, 0, 1])))
    [slice(0, 2, None), slice(2, 3, None)]
    """
    edges = [*np.flatnonzero(np.diff(step, prepend=-1)).tolist(), len(step)]
    return (slice(start, end) for start, end in pairwise(edges))


def _sorted(*columns: Ints) -> Ints:
    """The indices that sort rows by some columns, the first column first; equal rows keep their order."""
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
    """For each row: the number of earlier rows, in the given order, that equal it in all columns.

    Equal rows must be adjacent in that order.
    """
    begins = _begins(order, *columns)
    places = np.arange(len(order))
    count = np.empty(len(order), np.int64)
    count[order] = places - np.maximum.accumulate(np.where(begins, places, 0))
    return count


def _dense(order: Ints, group: np.ndarray, columns: tuple[np.ndarray, ...]) -> Ints:
    """Numbers the runs of rows that are equal in all columns, in the given order, from 0 in each group."""
    steps = np.cumsum(_begins(order, group, *columns))
    starts = np.flatnonzero(_begins(order, group))
    sizes = np.diff(np.append(starts, len(order)))
    numbers: Ints = steps - np.repeat(steps[starts], sizes)
    return numbers
