"""The order of judging: divides the rows of a frame into steps, which are judged one after the other."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import polars as pl

from engine.columns.packing import LARGEST, ordered
from models.numbers.arrays import Flags, Ints
from pipelines.jobs.detectors.metrics.state import DetectionState


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


def in_judging_order(frame: pl.DataFrame, state: DetectionState) -> tuple[pl.DataFrame, Ints, Ints, Ints]:
    """Sorts the rows of a frame in the order in which they are judged.

    Returns:
        The sorted frame; and for each row the row of its series in the state, the row of its machine in the state, and
        the number of its step, each of shape (n,).
    """
    if "kind" not in frame.columns:
        frame = frame.with_columns(kind=pl.lit("gauge"))
    if "count" not in frame.columns:
        frame = frame.with_columns(count=pl.lit(1))
    if "prompt" not in frame.columns:
        frame = frame.with_columns(prompt="value")
    text = [pl.col(name).cast(pl.String) for name in ("entity", "metric", "kind")]
    whole = [pl.col(name).cast(pl.Int64) for name in ("window_start", "window_end")]
    whole.append(pl.col("count").cast(pl.Int64).fill_null(1))
    values = pl.col("value", "prompt").cast(pl.Float64).fill_null(float("nan"))
    frame = frame.select(*text, *whole, values)
    keys = frame.select("entity", "metric").unique().sort("entity", "metric")
    keys = keys.with_columns(owner=pl.col("entity").rle_id().cast(pl.Int64), series=pl.int_range(pl.len()))
    numbers = frame.join(keys, on=["entity", "metric"], how="left", maintain_order="left")
    series, owner = numbers["series"].to_numpy(), numbers["owner"].to_numpy()
    order, step = judging_order(series, owner, frame["window_end"].to_numpy())
    series = series[order]
    met = np.argsort(np.unique(series, return_index=True)[1])
    names = keys.select("entity", "metric")[met]
    rows, entities = np.empty(len(met), np.int64), np.empty(len(met), np.int64)
    rows[met] = state.series.rows(names)
    entities[met] = state.entities.rows(names)
    return frame[order], rows[series], entities[series], step


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


def in_company(step: Ints, owner: Ints, alone: Flags) -> tuple[Ints, Ints]:
    """The rows whose machine has other rows in the same step, which are next to them, and where each machine begins.

    Args:
        step: The number of the step of each row.
        owner: The machine of each row.
        alone: True for rows that count even if their machine has no other row in the step.

    >>> step, owner = np.array([0, 0, 0, 1, 1, 2]), np.array([4, 5, 5, 4, 4, 5])
    >>> in_company(step, owner, step == 2)
    (array([1, 2, 3, 4, 5]), array([0, 2, 4]))
    """
    begins = _first_of_machines(step, owner)
    rows = np.flatnonzero(~(begins[:-1] & begins[1:]) | alone)
    return rows, np.flatnonzero(begins[rows])


def metrics_at_once(step: Ints, owner: Ints) -> Ints:
    """How many rows of the same machine are in the step of each row.

    >>> metrics_at_once(np.array([0, 0, 0, 1, 1, 2]), np.array([4, 5, 5, 4, 4, 5]))
    array([1, 2, 2, 2, 2, 1])
    """
    counts = np.diff(np.flatnonzero(_first_of_machines(step, owner)))
    return np.repeat(counts, counts)


def _first_of_machines(step: Ints, owner: Ints) -> Flags:
    """True for the first row of each machine in each step, and once more at the end, shape (n + 1,)."""
    begins = np.ones(len(step) + 1, np.bool_)
    begins[1:-1] = (step[1:] != step[:-1]) | (owner[1:] != owner[:-1])
    return begins
