"""Quantiles by DDSketch (Masson, Rim, Lee, PVLDB 2019): log buckets of bounded relative error, kept as rows.

A sketch is no object: it is the rows (key, pane, bucket, n) of one table for all keys, so that updating, merging and
reading a hundred thousand sketches are three vectorised group-bys.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from engine.aggregates.base import numbers

RELATIVE_ERROR = 0.01
"""Largest relative error of a quantile; also the half width of a bucket."""

_LOG_GAMMA = math.log((1 + RELATIVE_ERROR) / (1 - RELATIVE_ERROR))
_TINY = 1e-12
_OFFSET = 1 + math.ceil(-math.log(_TINY) / _LOG_GAMMA)
BUCKET_SPAN = 1 << 17
"""All bucket numbers, shifted by half of it, lie below this."""


@dataclass(frozen=True)
class Quantile:
    """The q-quantile of a column; absolute values below 1e-12 count as zero.

    >>> import numpy as np
    >>> values = np.array([0.0, -3.0, 250.0, 1e9])
    >>> bool(np.all(np.abs(from_bucket(to_bucket(values)) - values) <= RELATIVE_ERROR * np.abs(values)))
    True
    """

    column: str
    q: float

    def reference(self, records: Sequence[dict[str, object]]) -> object:
        """The exact quantile by nearest rank; the sketch lies within `RELATIVE_ERROR` of it."""
        values = sorted(numbers(records, self.column))
        return values[max(0, math.ceil(self.q * len(values)) - 1)]


def to_bucket(values: npt.NDArray[np.float64]) -> npt.NDArray[np.int32]:
    """Bucket of each value: sign × (1 + offset + ceil(log_gamma |v|)); 0 holds zero."""
    size = np.abs(values)
    with np.errstate(divide="ignore"):
        index = np.ceil(np.log(size) / _LOG_GAMMA) + _OFFSET
    return np.where(size < _TINY, 0, np.copysign(index, values)).astype(np.int32)


def from_bucket(buckets: npt.NDArray[np.int32]) -> npt.NDArray[np.float64]:
    """The value that stands for each bucket: the one with equal relative error to both of its bounds."""
    index = np.abs(buckets.astype(np.float64)) - _OFFSET
    size = np.exp(np.minimum(index * _LOG_GAMMA, 709.0)) * (1 - RELATIVE_ERROR)
    return np.where(buckets == 0, 0.0, np.copysign(size, buckets))


def quantiles(sketch: pl.DataFrame, group: list[str], wanted: dict[str, float]) -> pl.DataFrame:
    """Reads quantiles off sketches by nearest rank.

    Args:
        sketch: Columns of ``group``, ``bucket`` and ``n``; a bucket may stand in several rows.
        group: The columns that name one sketch.
        wanted: Name of each result column, and its q.

    Returns:
        One row a sketch: ``group`` and a column a quantile.
    """
    ordered = sketch.group_by(*group, "bucket").agg(pl.col("n").sum()).sort(*group, "bucket")
    ranked = ordered.with_columns(cum=pl.col("n").cum_sum().over(group), total=pl.col("n").sum().over(group))
    picks = []
    for name, q in wanted.items():
        rank = (pl.col("total") * q).ceil().clip(lower_bound=1)
        picks.append(pl.col("bucket").filter(pl.col("cum") >= rank).first().alias(name))
    result = ranked.group_by(group, maintain_order=True).agg(picks)
    return result.with_columns(pl.Series(name, from_bucket(result[name].to_numpy())) for name in wanted)
