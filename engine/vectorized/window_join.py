"""Window join over columns."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import numpy as np
import polars as pl

from engine.columns.tables import stacked
from engine.operators.two_sided import LEFT_TIME, RIGHT_TIME, Sides
from engine.operators.window_join import END, WindowJoin
from engine.spec.operator import Progress
from engine.state.rescaling import Rescaling
from engine.state.segments import ShardState
from engine.vectorized.ordered import OrderedProcessor
from engine.vectorized.processor import Results
from engine.vectorized.two_sided import load, save
from engine.windows import Sliding


def ends(frame: pl.DataFrame, time: str, window: Sliding, before: int, now: int) -> pl.DataFrame:
    """For each row, one row for each of its windows that end after ``before`` and up to ``now``."""
    if not frame.height:
        return frame
    last = window.slice_start(pl.col(time)) + window.size_ms
    spans = [(last - i * window.slice_ms).alias(END) for i in reversed(range(window.most_windows))]
    due = (pl.col(END) > pl.max_horizontal(pl.col(time), before)) & (pl.col(END) <= now)
    rows = pl.concat([frame.with_columns(span).filter(due) for span in spans])
    return rows.with_columns((pl.col(END) - window.size_ms).alias("window_start"))


class WindowJoinProcessor(OrderedProcessor):
    """The logic of a `WindowJoin`.

    State: segment ``sides`` holds the records of both streams that lie in an open window.
    """

    instant: ClassVar[bool] = False

    def __init__(self, config: WindowJoin) -> None:
        super().__init__(config)
        self.sides, self.window = Sides(config, config.key), config.window

    def due(self) -> pl.Expr:
        """The end of a record's first window."""
        last = self.window.slice_start(pl.col(self.time)) + self.window.size_ms
        return last - (last - pl.col(self.time) - 1) // self.window.slice_ms * self.window.slice_ms

    def process(self, batch: pl.DataFrame, state: ShardState, progress: Progress) -> Results:
        """Leaves out the records that lie between windows, which are in no pair and not late."""
        if batch.height and self.window.size_ms < self.window.slice_ms:
            time = batch[self.time]
            inside = time < batch.select(self.window.slice_start(pl.col(self.time))).to_series() + self.window.size_ms
            if progress.in_log is not None:
                progress = replace(progress, in_log=np.asarray(progress.in_log)[inside.to_numpy()])
            batch = batch.filter(inside)
        return super().process(batch, state, progress)

    def apply(self, ready: pl.DataFrame, state: ShardState, progress: Progress) -> pl.DataFrame:
        """The pairs of the windows whose end the watermark has passed."""
        new, kept = self.sides.cut(ready), load(state, "sides")
        left, right = stacked(kept[0], new[0]), stacked(kept[1], new[1])
        if not left.height and not right.height:
            return pl.DataFrame()
        results = pl.DataFrame()
        if left.height and right.height:
            rights = ends(right, RIGHT_TIME, self.window, progress.before, progress.now).drop("window_start")
            lefts = ends(left, LEFT_TIME, self.window, progress.before, progress.now)
            results = lefts.join(rights, on=[*self.key, END])
        save(state, "sides", self._open(left, LEFT_TIME, progress.now), self._open(right, RIGHT_TIME, progress.now))
        return results

    def _open(self, frame: pl.DataFrame, time: str, now: int) -> pl.DataFrame:
        last = self.window.slice_start(pl.col(time)) + self.window.size_ms
        return frame.filter(last > now) if frame.height else frame

    def rescale_own(self, states: Rescaling) -> None:
        """Divides the records of both streams."""
        states.segments("sides")
