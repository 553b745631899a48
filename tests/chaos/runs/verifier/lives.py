"""What a version that went back to a savepoint may have written twice, as docs/savepoints.md says; and nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

ARRIVED = "arrived"
"""The column that says when a row arrived at Kafka, epoch milliseconds."""


@dataclass(frozen=True)
class Restored:
    """When a version was saved, and when it began to run again.

    Attributes:
        since: When its jobs had completed the micro-batches that the savepoint has, epoch milliseconds. What they wrote
            later may be written again after they were restored.
        began: When they were put back, or that was tried, epoch milliseconds: then they did not run.
    """

    since: int
    began: Sequence[int]

    def once(self, rows: pl.DataFrame, same: Sequence[str]) -> pl.DataFrame:
        """Leaves out what was written again later on, each row at most once for each time that it was.

        A row stays if it was written before the savepoint, or by the same run as the other one: it is then there twice.

        Args:
            rows: The rows of a topic with the column `ARRIVED`, in the order of each partition.
            same: Columns by which a row is recognised.
        """
        life = pl.sum_horizontal((pl.col(ARRIVED) >= at).cast(pl.Int64) for at in self.began)
        numbered = rows.with_columns(__life=life).with_columns(__n=pl.int_range(pl.len()).over(*same, "__life"))
        again = pl.col("__life") < pl.col("__life").max().over(*same, "__n")
        return numbered.filter(~again | (pl.col(ARRIVED) < self.since)).drop("__life", "__n")
