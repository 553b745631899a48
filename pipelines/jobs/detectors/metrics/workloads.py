"""What the replicas of each workload have in common by metric; a new replica starts from it, see `PeersKept`.

All replicas of a workload are in one partition. Sums over its series say what the workload is, also while only replicas
that have ended are known. When the last one is forgotten, what it knew stays as that of its workload: state in segment
``workloads``, bounded by the number of workloads and metrics per partition.
"""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from engine.columns.partitioning import slots
from engine.columns.replicas import replicas_of
from engine.state.rescaling import Rescaling
from engine.state.segments import ShardState, pack, unpack
from models.numbers.arrays import Columns, Ints
from models.series.predecessors import Predecessors
from pipelines.jobs.detectors.metrics.state import DetectionState

MOST = 5_000
"""Of how many metrics of workloads without replicas a partition remembers what they were: about 0.6 KB each."""

_SEGMENT = "workloads"
_KEY = ("partition", "workload", "metric")


class Workloads:
    """The workloads of one shard.

    Args:
        state: The state of the shard.
        predecessors: Computes sums, and starts new replicas from them.
        partitions: Number of partitions into which machines are divided.
    """

    def __init__(self, state: ShardState, predecessors: Predecessors, partitions: int) -> None:
        self.state, self.predecessors, self.partitions = state, predecessors, partitions

    def sums(self, models: DetectionState) -> pl.DataFrame:
        """Sums over the known replicas, by partition, workload and metric, with the end of the last window."""
        return self._sums(models, self._placed(models.series.index.keys.with_row_index("row")), _KEY)

    def start(self, models: DetectionState, new: pl.DataFrame, sums: pl.DataFrame) -> pl.DataFrame:
        """Starts new replicas from what their workload is, or else was; returns the series that it is not known of.

        Args:
            models: The models' state; changed.
            new: New series: ``entity``, ``metric``.
            sums: As from `sums`.
        """
        replicas = self._placed(new)
        if replicas.is_empty():
            return new
        for known in (sums, self._remembered()):
            if known.is_empty() or replicas.is_empty():
                continue
            here = replicas.join(known.select(_KEY).with_row_index("place"), on=_KEY).sort("entity", "metric")
            rows = models.series.rows(here.select("entity", "metric"))
            columns: Columns = {name: known[name].to_numpy() for name in known.columns if name not in (*_KEY, "last")}
            self.predecessors.start(models.series.columns, rows, columns, here["place"].cast(pl.Int64).to_numpy())
            replicas = replicas.join(here, on=["entity", "metric"], how="anti")
            new = new.join(here, on=["entity", "metric"], how="anti", maintain_order="left")
        return new

    def remember(self, models: DetectionState, rows: Ints) -> None:
        """Keeps what some series knew, which are about to be forgotten, as what their workloads were.

        Of a workload's series that which ended last counts, so that it makes no difference which are forgotten at once.

        Args:
            models: The models' state.
            rows: Rows of the series.
        """
        series = self._placed(models.series.index.keys.with_row_index("row")[rows])
        alone = self._sums(models, series, (*_KEY, "entity")).drop("entity", strict=False)
        if alone.is_empty():
            return
        known = self._remembered()
        whole = pl.concat([known, alone], how="diagonal_relaxed")
        last = whole.sort("last", maintain_order=True).unique(_KEY, keep="last", maintain_order=True)
        kept = last.sort("last", "workload", "metric").group_by("partition", maintain_order=True).tail(MOST)
        self.state.put(_SEGMENT, pack({_SEGMENT: kept}))

    @staticmethod
    def rescale(states: Rescaling) -> None:
        """Gives each new shard what is remembered of the workloads of its partitions."""
        for shard, state, sources in states.shards():
            parts = [_read(source) for source in sources]
            mine = [part.filter(pl.col("partition") % len(states.after) == shard) for part in parts if part.height]
            if any(part.height for part in mine):
                state.put(_SEGMENT, pack({_SEGMENT: pl.concat(mine, how="diagonal_relaxed")}))

    def _sums(self, models: DetectionState, series: pl.DataFrame, by: tuple[str, ...]) -> pl.DataFrame:
        if series.is_empty():
            return pl.DataFrame()
        order = series.sort(*_KEY, "entity")
        groups = order.select(by).unique(maintain_order=True)
        number = order.select(pl.struct(by).rle_id().cast(pl.Int64)).to_series().to_numpy()
        rows = order["row"].cast(pl.Int64).to_numpy()
        sums = self.predecessors.sums(models.series.columns, rows, number, groups.height)
        last = np.maximum.reduceat(models.series.columns["time"][rows], np.flatnonzero(np.diff(number, prepend=-1)))
        table = groups.with_columns(pl.Series("last", last), *(_column(name, sums[name]) for name in sums))
        return table.filter(pl.col("variance") > 0)

    def _remembered(self) -> pl.DataFrame:
        return _read(self.state)

    def _placed(self, series: pl.DataFrame) -> pl.DataFrame:
        """The series of machines that are replicas, with their workload and partition."""
        names = series["entity"].unique(maintain_order=True).cast(pl.String).to_list()
        workloads = {name: workload for name in names if (workload := replicas_of(name))}
        if not workloads:
            return series.clear()
        table = pl.DataFrame({"entity": list(workloads), "workload": list(workloads.values())})
        table = table.with_columns(pl.Series("partition", slots(table["entity"], self.partitions), pl.Int64))
        return series.join(table, on="entity", maintain_order="left")


def _column(name: str, values: NDArray[np.generic]) -> pl.Series:
    """A column of numbers, or of as many numbers each."""
    return pl.Series(name, np.ascontiguousarray(values))


def _read(state: ShardState) -> pl.DataFrame:
    stored = state.get(_SEGMENT)
    return unpack(stored)[_SEGMENT] if stored else pl.DataFrame()
