"""Counts of values between given edges, kept as rows of the buckets in use."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

import numpy as np
import polars as pl

from engine.aggregates.aggregate import COUNT, ROOM, RowAggregate, present
from engine.columns.packing import grouped
from engine.spec.errors import NewnormalError

BUCKET = "__bucket"


@dataclass(frozen=True)
class Histogram(RowAggregate):
    """Numbers of values below the first edge, between neighbouring edges (lower one included), and from the last on.

    Args:
        column: The column.
        edges: The edges, ascending; the result has one count more than there are edges.

    Raises:
        NewnormalError: ``AGGREGATE_INVALID``.
    """

    earlier: ClassVar[tuple[str, ...]] = ("bucket", "n")
    column: str
    edges: tuple[float, ...]

    def __post_init__(self) -> None:
        if not 0 < len(self.edges) < ROOM or not all(a < b for a, b in pairwise(self.edges)):
            raise NewnormalError(
                "AGGREGATE_INVALID", f"edges = {self.edges}", f"Histogram({self.column!r})", "some numbers, ascending"
            )

    @property
    def table(self) -> str:
        return f"histogram:{self.column}:{','.join(map(repr, self.edges))}"

    def lift(self, records: pl.DataFrame, by: list[str], group: pl.Series | None) -> pl.DataFrame:
        records, group = present(records, self.column, group)
        places = np.searchsorted(self.edges, records[self.column].cast(pl.Float64).to_numpy(), side="right")
        buckets = pl.Series(BUCKET, places.astype(np.int32))
        if group is not None:
            group = group * ROOM + buckets.cast(pl.UInt64)
        rows = records.select(by).with_columns(buckets)
        return grouped(rows, [*by, BUCKET], {COUNT: pl.len().cast(pl.Int64)}, group)

    def merge(self, rows: pl.DataFrame, by: list[str]) -> pl.DataFrame:
        return grouped(rows, [*by, BUCKET], {COUNT: pl.col(COUNT).sum()})

    def finish(self, rows: pl.DataFrame, by: list[str], aggregates: Mapping[str, Histogram]) -> pl.DataFrame:
        places = range(len(self.edges) + 1)
        counts = {f"__{i}": pl.col(COUNT).filter(pl.col(BUCKET) == i).sum() for i in places}
        table = grouped(rows, by, counts)
        return table.select(*by, *(pl.concat_list(list(counts)).alias(name) for name in aggregates))
