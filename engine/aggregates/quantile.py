"""Quantiles by DDSketch (Masson, Rim, Lee, PVLDB 2019): log buckets of bounded relative error, kept as rows.

A sketch is not an object but rows (key, slice, bucket, n) of one table for all keys, so that updating, merging and
reading a hundred thousand sketches take three vectorised group-bys.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import polars as pl

from engine.aggregates.aggregate import COUNT, ROOM, RowAggregate, present
from engine.aggregates.histogram import BUCKET
from engine.columns.packing import grouped, ordered, packed
from engine.spec.errors import NewnormalError

RELATIVE_ERROR = 0.01
"""Largest relative error of a quantile; also the half width of a bucket."""

_LOG_GAMMA = math.log((1 + RELATIVE_ERROR) / (1 - RELATIVE_ERROR))
_TINY = 1e-12
_OFFSET = 1 + math.ceil(-math.log(_TINY) / _LOG_GAMMA)


@dataclass(frozen=True)
class Quantile(RowAggregate):
    """The q-quantile of a column; absolute values below 1e-12 count as zero.

    >>> import numpy as np
    >>> values = np.array([0.0, -3.0, 250.0, 1e9])
    >>> bool(np.all(np.abs(from_bucket(to_bucket(values)) - values) <= RELATIVE_ERROR * np.abs(values)))
    True
    """

    earlier: ClassVar[tuple[str, ...]] = ("bucket", "n")
    column: str
    q: float

    def __post_init__(self) -> None:
        if not 0 <= self.q <= 1:
            raise NewnormalError("AGGREGATE_INVALID", f"q = {self.q}", f"Quantile({self.column!r})", "0 to 1")

    @property
    def table(self) -> str:
        return f"sketch:{self.column}"

    def lift(self, records: pl.DataFrame, by: list[str], group: pl.Series | None) -> pl.DataFrame:
        records, group = present(records, self.column, group)
        buckets = pl.Series(BUCKET, to_bucket(records[self.column].to_numpy()))
        return _tallied(records.select(by).with_columns(buckets, pl.lit(1, pl.Int64).alias(COUNT)), by, group)

    def merge(self, rows: pl.DataFrame, by: list[str]) -> pl.DataFrame:
        return _tallied(rows, by, packed(rows, by, room=ROOM))

    def finish(self, rows: pl.DataFrame, by: list[str], aggregates: Mapping[str, Quantile]) -> pl.DataFrame:
        return quantiles(rows, by, {name: aggregate.q for name, aggregate in aggregates.items()})


def to_bucket(values: npt.NDArray[np.float64]) -> npt.NDArray[np.int32]:
    """Bucket of each value: sign × (1 + offset + ceil(log_gamma |v|)); bucket 0 holds zero."""
    size = np.abs(values)
    with np.errstate(divide="ignore"):
        index = np.ceil(np.log(size) / _LOG_GAMMA) + _OFFSET
    return np.where(size < _TINY, 0, np.copysign(index, values)).astype(np.int32)


def from_bucket(buckets: npt.NDArray[np.int32]) -> npt.NDArray[np.float64]:
    """The value that represents each bucket: its relative error to both bounds of the bucket is equal."""
    index = np.abs(buckets.astype(np.float64)) - _OFFSET
    size = np.exp(np.minimum(index * _LOG_GAMMA, 709.0)) * (1 - RELATIVE_ERROR)
    return np.where(buckets == 0, 0.0, np.copysign(size, buckets))


def quantiles(sketch: pl.DataFrame, group: list[str], levels: dict[str, float]) -> pl.DataFrame:
    """Computes quantiles from sketches by nearest rank.

    Args:
        sketch: Columns of ``group``, `BUCKET` and `COUNT`; a bucket may be in several rows.
        group: The columns that identify a sketch.
        levels: The level q of the quantile in each result column.

    Returns:
        One row for each sketch: ``group`` and a column for each quantile.
    """
    order, number = _order(sketch, group)
    counts, buckets = sketch[COUNT].to_numpy()[order], sketch[BUCKET].to_numpy()[order]
    starts = np.flatnonzero(np.diff(number, prepend=-1))
    reached = np.cumsum(counts)
    before = reached[starts] - counts[starts]
    totals = np.diff(np.append(before, reached[-1:]))
    columns = []
    for name, q in levels.items():
        rank = np.maximum(np.ceil(totals * q), 1)
        at = np.searchsorted(reached, before + rank)
        columns.append(pl.Series(name, from_bucket(buckets[at])))
    return sketch.select(group)[order[starts]].with_columns(columns)


def _order(sketch: pl.DataFrame, group: list[str]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """The order of rows by sketch and bucket, and in that order the number of each row's sketch."""
    codes = packed(sketch, group, room=ROOM)
    if codes is not None:
        order, both = ordered(_with_bucket(codes, sketch))
        return order, (both // ROOM).astype(np.int64)
    order = sketch.select(pl.arg_sort_by(*group, BUCKET)).to_series().to_numpy().astype(np.int64)
    return order, sketch.select(group)[order].select(pl.struct(group).rle_id()).to_series().to_numpy().astype(np.int64)


def _tallied(rows: pl.DataFrame, by: list[str], group: pl.Series | None) -> pl.DataFrame:
    """A row for each sketch and bucket, with the sum of the counts; ``group`` numbers the sketches."""
    if group is None or not rows.height:
        return grouped(rows, [*by, BUCKET], {COUNT: pl.col(COUNT).sum()})
    order, codes = ordered(_with_bucket(group, rows))
    starts = np.flatnonzero(np.concatenate([[True], codes[1:] != codes[:-1]]))
    counts = np.add.reduceat(rows[COUNT].to_numpy()[order], starts)
    return rows.select(*by, BUCKET)[order[starts]].with_columns(pl.Series(COUNT, counts, pl.Int64))


def _with_bucket(group: pl.Series, rows: pl.DataFrame) -> npt.NDArray[np.uint64]:
    buckets: npt.NDArray[np.uint64] = (rows[BUCKET].to_numpy() + ROOM // 2).astype(np.uint64)
    buckets += group.to_numpy() * np.uint64(ROOM)
    return buckets
