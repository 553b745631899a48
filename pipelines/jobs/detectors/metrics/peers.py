"""Sums over the known series of a metric; a new series of that metric and partition starts from them.

A new replica of a workload starts from the series of its workload (`Workloads`), a new series of another machine, or of
a workload of which nothing is known, from those of all machines in its partition.

A machine belongs to a partition of the topic, by its name, and a partition to one shard. As each partition has sums of
its own, what a new series starts from does not depend on the number of shards, and sums move with their partition.

A series whose first window ends in (k · horizon, (k + 1) · horizon] starts from the sums at (k - 1) · horizon. When
that window is judged, late windows can no longer change these sums, so they do not depend on the boundaries of
micro-batches. State: segments ``peers/<time>`` hold the sums, the note ``peers`` their times.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from engine.columns.partitioning import slots
from engine.state.rescaling import Rescaling
from engine.state.segments import ShardState, Tables, joined, pack, unpack
from models.detector import Detector
from pipelines.jobs.detectors.metrics.state import DetectionState
from pipelines.jobs.detectors.metrics.workloads import Workloads

_PARTITION = "partition"
_KEPT = 3
"""For how many horizons before the watermark sums are kept: two, and one more where the journal begins."""


class PeersKept:
    """The sums of the partitions of one shard, by time.

    Args:
        state: The state of the shard.
        horizon: How far behind the watermark a window can be judged again at least, milliseconds.
        detector: Computes sums, and starts new series from them.
        partitions: Number of partitions into which machines are divided.
    """

    def __init__(self, state: ShardState, horizon: int, detector: Detector, partitions: int) -> None:
        self.state, self.horizon, self.newcomers, self.partitions = state, horizon, detector.newcomers, partitions
        self.workloads = Workloads(state, detector.predecessors, partitions)
        self.times: list[int] = state.notes.setdefault("peers", [])

    def times_to_keep(self, new: pl.DataFrame, before: int, now: int) -> list[int]:
        """The instants in (before, now] at which sums must be kept, epoch milliseconds.

        Args:
            new: New series, as from `unknown_series`.
            before: The watermark before the micro-batch, epoch milliseconds.
            now: The watermark after it.
        """
        every = self.horizon
        last = range(max(before, now - _KEPT * every) // every + 1, now // every + 1)
        times = {number * every for number in last}
        if new.height:
            times |= {time for time in new["time"].to_list() if before < time <= now}
        return sorted(times)

    def keep(self, time: int, models: DetectionState) -> None:
        """Stores the sums over the models' state as those of an instant."""
        tables = {"peers": self._sums(models), "workloads": self.workloads.sums(models)}
        tables = {name: table for name, table in tables.items() if table.height}
        if tables:
            self.state.put(f"peers/{time}", pack(tables))
            if time not in self.times:
                self.times.append(time)
        elif time in self.times:
            self._drop(time)

    def start(self, models: DetectionState, new: pl.DataFrame) -> None:
        """Starts new series (as from `unknown_series`) from the sums of their workload, or else of their metric."""
        for time in sorted(set(new["time"].to_list())) if new.height else []:
            tables = self._read(self.state, time)
            strangers = self.workloads.start(
                models, new.filter(pl.col("time") == time), tables.get("workloads", pl.DataFrame())
            )
            if "peers" not in tables:
                continue
            sums = tables["peers"].with_row_index("place")
            by = [name for name in (_PARTITION, "metric") if name in sums.columns]  # older state: one sum for all
            newcomers = self._divided(strangers)
            here = newcomers.join(sums.select(*by, "place"), on=by)
            here = here.sort("entity", "metric")
            rows = models.series.rows(here)
            columns = {name: sums[name].to_numpy() for name in sums.columns if name not in (*by, "place")}
            place = here["place"].cast(pl.Int64).to_numpy()
            self.newcomers.start(models.series.columns, rows, columns, place)

    @staticmethod
    def rescale(states: Rescaling) -> None:
        """Gives each new shard the sums of its partitions.

        Of an older state, whose sums are of whole shards, those of the first shard are kept where shards become one.
        """
        Workloads.rescale(states)
        for shard, state, sources in states.shards():
            parts_of_time: dict[int, list[Tables]] = {}
            for source in sources:
                for time in source.notes.get("peers", []):
                    tables = PeersKept._read(source, time)
                    if any(_PARTITION not in table.columns for table in tables.values()) and time in parts_of_time:
                        continue
                    mine = {
                        name: table.filter(pl.col(_PARTITION) % len(states.after) == shard)
                        if _PARTITION in table.columns
                        else table
                        for name, table in tables.items()
                    }
                    mine = {name: table for name, table in mine.items() if table.height}
                    if mine:
                        parts_of_time.setdefault(time, []).append(mine)
            for time, parts in parts_of_time.items():
                state.put(f"peers/{time}", pack(joined(parts)))
            if parts_of_time:
                state.notes["peers"] = sorted(parts_of_time)

    @staticmethod
    def _read(state: ShardState, time: int) -> Tables:
        stored = state.get(f"peers/{time}")
        return unpack(stored) if stored else {}

    def forget(self, base: int) -> None:
        """Removes sums that no series whose first window ends after ``base`` can start from."""
        for time in [time for time in self.times if time < base - self.horizon]:
            self._drop(time)

    def _drop(self, time: int) -> None:
        self.state.remove(f"peers/{time}")
        self.times.remove(time)

    def unknown_series(self, frame: pl.DataFrame, models: DetectionState, anew: pl.DataFrame) -> pl.DataFrame:
        """The new series of a frame: the end of their first window, and the ``time`` of the sums they start from.

        Args:
            frame: Windows.
            models: The state.
            anew: Windows with which series may begin anew: columns ``entity``, ``metric``, ``window_end``.
        """
        none = pl.DataFrame(
            schema={**dict.fromkeys(("entity", "metric"), pl.String), **dict.fromkeys(("window_end", "time"), pl.Int64)}
        )
        if not frame.height:
            return none
        keys = frame.select("entity", "metric").unique(maintain_order=True)
        met = models.series.has(keys)
        if met.all() and anew.is_empty():
            return none
        first = frame.join(keys.filter(~pl.Series(met)), on=["entity", "metric"], how="semi")
        first = first.group_by("entity", "metric").agg(pl.col("window_end").min())
        if anew.height:
            first = pl.concat([first, anew], how="vertical_relaxed")
        return first.with_columns(time=((pl.col("window_end") - 1) // self.horizon - 1) * self.horizon)

    def _sums(self, models: DetectionState) -> pl.DataFrame:
        keys = models.series.index.keys
        if not keys.height:
            return pl.DataFrame()
        order = self._divided(keys.with_row_index("row")).sort(_PARTITION, "metric", "entity")
        groups = order.select(_PARTITION, "metric").unique().sort(_PARTITION, "metric")
        number = order.select(pl.struct(_PARTITION, "metric").rle_id().cast(pl.Int64)).to_series().to_numpy()
        rows = order["row"].cast(pl.Int64).to_numpy()
        sums = self.newcomers.sums(models.series.columns, rows, number, groups.height)
        table = groups.with_columns(pl.Series(name, np.asarray(column)) for name, column in sums.items())
        return table.filter(pl.col("variance") > 0)

    def _divided(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Adds the number of the partition of each row's machine."""
        return frame.with_columns(pl.Series(_PARTITION, slots(frame["entity"], self.partitions), pl.Int64))
