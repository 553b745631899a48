"""Interval join over columns."""

from __future__ import annotations

import polars as pl

from engine.columns.tables import stacked
from engine.operators.interval_join import IntervalJoin
from engine.operators.two_sided import LEFT_TIME, RIGHT_TIME, Sides
from engine.spec.operator import Progress
from engine.state.rescaling import Rescaling
from engine.state.segments import ShardState
from engine.vectorized.ordered import OrderedProcessor
from engine.vectorized.two_sided import load, save

_BUCKET, _LEFT, _MATCHED = "__bucket", "__left", "__matched"


class IntervalJoinProcessor(OrderedProcessor):
    """The logic of an `IntervalJoin`.

    State: segment ``sides`` holds the records of both streams that may still find a partner.
    """

    def __init__(self, config: IntervalJoin) -> None:
        super().__init__(config)
        self.sides = Sides(config, config.key)
        self.lower, self.upper, self.outer = int(config.lower), int(config.upper), config.how == "left"
        self.width = max(self.upper - self.lower, 1)

    def apply(self, ready: pl.DataFrame, state: ShardState, progress: Progress) -> pl.DataFrame:
        """The pairs of the records with each other and with the stored ones."""
        new_left, new_right = self.sides.cut(ready)
        old_left, old_right = load(state, "sides")
        if not ready.height and not old_left.height and not old_right.height:
            return pl.DataFrame()
        if new_left.height:
            new_left = new_left.with_columns(pl.lit(False).alias(_MATCHED))
        left = stacked(old_left, new_left)
        left = left.with_row_index(_LEFT) if left.height else left
        pairs = stacked(
            self._pairs(left[old_left.height :], stacked(old_right, new_right)),
            self._pairs(left[: old_left.height], new_right),
        )
        results = pairs
        if left.height:
            hit = pl.col(_LEFT).is_in(pairs[_LEFT].unique().implode()) if pairs.height else pl.lit(False)
            left = left.with_columns((pl.col(_MATCHED) | hit).alias(_MATCHED))
            alone = left.filter(~pl.col(_MATCHED) & (self._end() < progress.now))
            if self.outer and alone.height:
                results = stacked(pairs, alone.with_columns(self._end().alias(self.time)))
            left = left.filter(pl.col(LEFT_TIME) + self.upper >= progress.now).drop(_LEFT)
        right = stacked(old_right, new_right)
        right = right.filter(pl.col(RIGHT_TIME) - self.lower >= progress.now) if right.height else right
        save(state, "sides", left, right)
        return self._columns(results)

    def _end(self) -> pl.Expr:
        return pl.col(LEFT_TIME) + max(self.upper, 0)

    def _pairs(self, left: pl.DataFrame, right: pl.DataFrame) -> pl.DataFrame:
        """All pairs, by a join over buckets of time as wide as the interval; a record touches at most two of them."""
        if not left.height or not right.height:
            return pl.DataFrame()
        first, last = (pl.col(LEFT_TIME) + self.lower) // self.width, (pl.col(LEFT_TIME) + self.upper) // self.width
        early, late = left.with_columns(first.alias(_BUCKET)), left.filter(first != last)
        late = late.with_columns(last.alias(_BUCKET))
        pairs = pl.concat([early, late]).join(
            right.with_columns((pl.col(RIGHT_TIME) // self.width).alias(_BUCKET)), on=[*self.key, _BUCKET]
        )
        apart = pl.col(RIGHT_TIME) - pl.col(LEFT_TIME)
        pairs = pairs.filter(apart.is_between(self.lower, self.upper))
        return pairs.with_columns(pl.max_horizontal(LEFT_TIME, RIGHT_TIME).alias(self.time))

    def _columns(self, results: pl.DataFrame) -> pl.DataFrame:
        if not results.height:
            return pl.DataFrame()
        names = [self.time, *self.sides.left_names.values(), *self.sides.right_names.values()]
        missing = [pl.lit(None).alias(name) for name in names if name not in results.columns]
        return results.with_columns(missing).select(list(dict.fromkeys(names)))

    def rescale_own(self, states: Rescaling) -> None:
        """Divides the records of both streams."""
        states.segments("sides")
