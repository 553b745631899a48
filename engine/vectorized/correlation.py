"""Rolling correlation over columns."""

from __future__ import annotations

from typing import ClassVar

import polars as pl

from engine.columns.tables import stacked
from engine.operators.correlation import FLAT, Correlation
from engine.operators.two_sided import LEFT_TIME, RIGHT_TIME, Sides
from engine.operators.window_join import END
from engine.spec.operator import Progress
from engine.state.rescaling import Rescaling
from engine.state.segments import ShardState, pack, unpack
from engine.vectorized.ordered import OrderedProcessor
from engine.vectorized.window_join import ends

_SLOT, _X, _Y, _FLAT = "__slot", "__x", "__y", "__flat"


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
        kept = unpack(stored)["pairs"] if stored else pl.DataFrame()
        before = {name.removeprefix("__"): name for name in (_SLOT, _X, _Y)}  # as earlier versions named them
        kept = kept.rename({old: now for old, now in before.items() if old not in self.key}, strict=False)
        pairs = stacked(kept, self._pairs(ready))
        if not pairs.height:
            return pairs
        by = [*self.key, "window_start", END]
        x, y = (pl.col(name) - pl.col(name).mean() for name in (_X, _Y))
        sums = (
            pl.len().cast(pl.Int64).alias("pairs"),
            ((x * y).sum() / (x.pow(2).sum().sqrt() * y.pow(2).sum().sqrt())).clip(-1, 1).alias("correlation"),
            (_is_flat(_X, x) | _is_flat(_Y, y)).alias(_FLAT),
        )
        windows = ends(pairs, _SLOT, self.window, progress.before, progress.now).sort(_SLOT).group_by(by).agg(*sums)
        rest = pairs.filter(pl.col(_SLOT) + self.window.size_ms > progress.now)
        if rest.height:
            state.put("pairs", pack({"pairs": rest}))
        else:
            state.remove("pairs")
        r = pl.when(~pl.col(_FLAT)).then("correlation").alias("correlation")
        return windows.filter(pl.col("pairs") >= self.config.least).select(*by, "pairs", r)

    def _pairs(self, ready: pl.DataFrame) -> pl.DataFrame:
        """The means of both streams in each slot in which both have values."""
        left, right = self.sides.cut(ready)
        if not left.height or not right.height:
            return pl.DataFrame()
        right_name = self.sides.right_names[self.config.y]
        x, y = self._means(left, LEFT_TIME, self.config.x, _X), self._means(right, RIGHT_TIME, right_name, _Y)
        return x.join(y, on=[*self.key, _SLOT])

    def _means(self, frame: pl.DataFrame, time: str, column: str, name: str) -> pl.DataFrame:
        slot = self.window.slice_start(pl.col(time)).alias(_SLOT)
        values = frame.select(*self.key, slot, pl.col(column).cast(pl.Float64).alias(name)).drop_nulls(name)
        return values.sort(name).group_by(*self.key, _SLOT, maintain_order=True).agg(pl.col(name).mean())

    def rescale_own(self, states: Rescaling) -> None:
        """Divides the means of the slots."""
        states.segments("pairs")


def _is_flat(name: str, deviations: pl.Expr) -> pl.Expr:
    return deviations.pow(2).mean().sqrt() <= FLAT * pl.col(name).abs().max()
