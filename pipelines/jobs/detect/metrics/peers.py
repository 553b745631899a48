"""Sums over the known series of a metric in a shard; a new series of that metric starts from them.

A series whose first window ends in (k · horizon, (k + 1) · horizon] starts from the sums at (k - 1) · horizon. When
that window is judged, late windows can no longer change these sums, so they do not depend on the boundaries of
micro-batches. State: segments ``peers/<time>`` hold the sums, the note ``peers`` their times.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from engine.state.rescaling import Rescaling
from engine.state.segments import ShardState, pack, unpack
from models.peers import Newcomers
from pipelines.jobs.detect.metrics.state import DetectionState

_KEPT = 3
"""For how many horizons before the watermark sums are kept: two, and one more where the journal begins."""


class PeersKept:
    """The sums of one shard, by time.

    Args:
        state: The state of the shard.
        horizon: How far behind the watermark a window can be judged again at least, milliseconds.
        newcomers: Computes sums, and starts new series from them.
    """

    def __init__(self, state: ShardState, horizon: int, newcomers: Newcomers) -> None:
        self.state, self.horizon, self.newcomers = state, horizon, newcomers
        self.times: list[int] = state.notes.setdefault("peers", [])

    def wanted(self, new: pl.DataFrame, before: int, now: int) -> list[int]:
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
        sums = self._sums(models)
        if sums.height:
            self.state.put(f"peers/{time}", pack({"peers": sums}))
            if time not in self.times:
                self.times.append(time)
        elif time in self.times:
            self._drop(time)

    def start(self, models: DetectionState, new: pl.DataFrame) -> None:
        """Starts new series (as from `unknown_series`) from the sums of their metric."""
        for time in sorted(set(new["time"].to_list()) & set(self.times)) if new.height else []:
            sums = unpack(self.state.get(f"peers/{time}") or b"[]\n")["peers"].with_row_index("place")
            here = new.filter(pl.col("time") == time).join(sums.select("metric", "place"), on="metric")
            here = here.sort("entity", "metric")
            rows = models.series.rows(here.select("entity", "metric").rows())
            columns = {name: sums[name].to_numpy() for name in sums.columns if name not in ("metric", "place")}
            place = here["place"].cast(pl.Int64).to_numpy()
            self.newcomers.start(models.series.columns, rows, columns, place)

    @staticmethod
    def rescale(states: Rescaling) -> None:
        """Gives the new shards the sums of the old ones; where shards become one, the sums of the first are kept.

        So what a metric has been on the machines of the others says nothing to a series that is new after that.
        """
        for _, state, sources in states.shards():
            kept = [source for source in sources if source.notes.get("peers")][:1]
            for source in kept:
                state.notes["peers"] = list(source.notes["peers"])
                for time in source.notes["peers"]:
                    state.put(f"peers/{time}", source.get(f"peers/{time}") or b"")

    def forget(self, base: int) -> None:
        """Removes sums that no series whose first window ends after ``base`` can start from."""
        for time in [time for time in self.times if time < base - self.horizon]:
            self._drop(time)

    def _drop(self, time: int) -> None:
        self.state.remove(f"peers/{time}")
        self.times.remove(time)

    def unknown_series(self, frame: pl.DataFrame, models: DetectionState) -> pl.DataFrame:
        """The new series of a frame: the end of their first window, and the ``time`` of the sums they start from."""
        none = pl.DataFrame(schema={"window_end": pl.Int64, "time": pl.Int64})
        if not frame.height:
            return none
        keys = frame.select("entity", "metric").unique(maintain_order=True)
        met = models.series.has(keys.iter_rows())
        if met.all():
            return none
        first = frame.join(keys.filter(~pl.Series(met)), on=["entity", "metric"], how="semi")
        first = first.group_by("entity", "metric").agg(pl.col("window_end").min())
        return first.with_columns(time=((pl.col("window_end") - 1) // self.horizon - 1) * self.horizon)

    def _sums(self, models: DetectionState) -> pl.DataFrame:
        keys = pl.DataFrame(models.series.keys(), {"entity": pl.String, "metric": pl.String}, orient="row")
        if not keys.height:
            return pl.DataFrame()
        order = keys.with_row_index("row").sort("metric", "entity")
        metrics = order.select("metric").unique().sort("metric")
        rows, number = order["row"].cast(pl.Int64).to_numpy(), order["metric"].rle_id().cast(pl.Int64).to_numpy()
        sums = self.newcomers.sums(models.series.columns, rows, number, metrics.height)
        made = metrics.with_columns(pl.Series(name, np.asarray(column)) for name, column in sums.items())
        return made.filter(pl.col("variance") > 0)
