"""Rolling correlation over columns."""

from __future__ import annotations

from typing import ClassVar

import polars as pl

from engine.operators.correlation import FLAT, Correlation
from engine.operators.two_sided import LEFT_TIME, RIGHT_TIME, Sides
from engine.operators.window_join import END
from engine.spec.operator import Progress
from engine.state.rescaling import Rescaling
from engine.state.segments import ShardState, pack, unpack
from engine.vectorized.ordered import OrderedProcessor
from engine.vectorized.two_sided import stacked
from engine.vectorized.window_join import ends


class CorrelationProcessor(OrderedProcessor):
    """The logic of a `Correlation`.

    State: segment ``pairs`` holds the means of both streams in each slot of an open window.
    """

    instant: ClassVar[bool] = False

    def __init__(self, config: Correlation) -> None:
        super().__init__(config)
        self.sides, self.config, self.window = Sides(config, config.key), config, config.window

    def due(self) -> pl.Expr:
        """The end of a record's slot."""
        return self.window.slice_start(pl.col(self.time)) + self.window.slice_ms

    def apply(self, ready: pl.DataFrame, state: ShardState, progress: Progress) -> pl.DataFrame:
        """The correlations of the windows whose end the watermark has passed."""
        stored = state.get("pairs")
        pairs = stacked(unpack(stored)["pairs"] if stored else pl.DataFrame(), self._pairs(ready))
        if not pairs.height:
            return pairs
        by = [*self.key, "window_start", END]
        x, y = pl.col("x") - pl.col("x").mean(), pl.col("y") - pl.col("y").mean()
        sums = {
            "pairs": pl.len().cast(pl.Int64),
            "xy": (x * y).sum(),
            **{"xx": x.pow(2).sum(), "yy": y.pow(2).sum()},
            **{"most_x": pl.col("x").abs().max(), "most_y": pl.col("y").abs().max()},
        }
        windows = ends(pairs, "slot", self.window, progress.before, progress.now).sort("slot").group_by(by).agg(**sums)
        rest = pairs.filter(pl.col("slot") + self.window.size_ms > progress.now)
        if rest.height:
            state.put("pairs", pack({"pairs": rest}))
        else:
            state.remove("pairs")
        flat = [(pl.col(f"{v}{v}") / pl.col("pairs")).sqrt() <= FLAT * pl.col(f"most_{v}") for v in "xy"]
        r = (pl.col("xy") / (pl.col("xx").sqrt() * pl.col("yy").sqrt())).clip(-1, 1)
        r = pl.when(flat[0] | flat[1]).then(None).otherwise(r).alias("correlation")
        return windows.filter(pl.col("pairs") >= self.config.least).select(*by, "pairs", r)

    def _pairs(self, ready: pl.DataFrame) -> pl.DataFrame:
        """The means of both streams in each slot in which both have values."""
        left, right = self.sides.cut(ready)
        if not left.height or not right.height:
            return pl.DataFrame()
        right_name = self.sides.right_names[self.config.y]
        x, y = self._means(left, LEFT_TIME, self.config.x, "x"), self._means(right, RIGHT_TIME, right_name, "y")
        return x.join(y, on=[*self.key, "slot"])

    def _means(self, frame: pl.DataFrame, time: str, column: str, name: str) -> pl.DataFrame:
        slot = self.window.slice_start(pl.col(time)).alias("slot")
        values = frame.select(*self.key, slot, pl.col(column).cast(pl.Float64).alias(name)).drop_nulls(name)
        return values.sort(name).group_by(*self.key, "slot", maintain_order=True).agg(pl.col(name).mean())

    def rescale_own(self, states: Rescaling) -> None:
        """Divides the means of the slots."""
        states.segments("pairs")
