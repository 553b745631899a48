"""Interval join: pairs of two streams with the same key whose times lie within bounds of each other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import polars as pl

from engine.operators.ordered import OrderedProcessor, OrderedReference
from engine.operators.two_sided import LEFT_TIME, RIGHT_TIME, Sides, TwoSided, load, save, together
from engine.spec.duration import duration_ms
from engine.spec.errors import NewnormalError
from engine.spec.operator import Processor, Progress, Reference, Row
from engine.state.segments import ShardState

_BUCKET, _LEFT, _MATCHED = "__bucket", "__left", "__matched"


@dataclass(frozen=True)
class IntervalJoin(TwoSided):
    """Pairs with left time + lower <= right time <= left time + upper; the pair's time is the later one.

    Args:
        lower: A duration; one that begins with a minus lies before the left record.
        upper: Likewise.
        how: ``left``: a left record without a pair is a result too, with nulls on the right, once none can come; its
            time is the end of the interval, or its own if that is later.

    Raises:
        NewnormalError: ``INTERVAL_INVALID`` if the upper bound lies before the lower one.
    """

    lower: str
    upper: str
    how: Literal["inner", "left"] = "inner"

    def __post_init__(self) -> None:
        if signed_ms(self.upper) < signed_ms(self.lower):
            what = f"upper {self.upper} lies before lower {self.lower}"
            raise NewnormalError("INTERVAL_INVALID", what, "interval join", 'e.g. lower="-5s", upper="5s"')

    def build(self) -> Processor:
        return IntervalJoinProcessor(self)

    def reference(self) -> Reference:
        return IntervalJoinReference(self)


def signed_ms(text: str) -> int:
    """Milliseconds of a duration that may begin with a minus.

    >>> signed_ms("-5s"), signed_ms("0s")
    (-5000, 0)
    """
    text = text.strip()
    return -duration_ms(text[1:]) if text.startswith("-") else duration_ms(text)


class IntervalJoinProcessor(OrderedProcessor):
    """The logic of an `IntervalJoin`.

    State: segment ``sides``, the records of both streams that a later one may still pair with.
    """

    def __init__(self, config: IntervalJoin) -> None:
        super().__init__(config)
        self.sides = Sides(config, config.key)
        self.lower, self.upper, self.outer = signed_ms(config.lower), signed_ms(config.upper), config.how == "left"
        self.width = max(self.upper - self.lower, 1)

    def apply(self, ready: pl.DataFrame, state: ShardState, progress: Progress) -> pl.DataFrame:
        """The pairs that the records make, with each other and with those kept."""
        new_left, new_right = self.sides.cut(ready)
        old_left, old_right = load(state, "sides")
        if not ready.height and not old_left.height and not old_right.height:
            return pl.DataFrame()
        if new_left.height:
            new_left = new_left.with_columns(pl.lit(False).alias(_MATCHED))
        left = together(old_left, new_left)
        left = left.with_row_index(_LEFT) if left.height else left
        pairs = together(
            self._pairs(left[old_left.height :], together(old_right, new_right)),
            self._pairs(left[: old_left.height], new_right),
        )
        results = pairs
        if left.height:
            hit = pl.col(_LEFT).is_in(pairs[_LEFT].unique().implode()) if pairs.height else pl.lit(False)
            left = left.with_columns((pl.col(_MATCHED) | hit).alias(_MATCHED))
            alone = left.filter(~pl.col(_MATCHED) & (self._end() < progress.now))
            if self.outer and alone.height:
                results = together(pairs, alone.with_columns(self._end().alias(self.time)))
            left = left.filter(pl.col(LEFT_TIME) + self.upper >= progress.now).drop(_LEFT)
        right = together(old_right, new_right)
        right = right.filter(pl.col(RIGHT_TIME) - self.lower >= progress.now) if right.height else right
        save(state, "sides", left, right)
        return self._columns(results)

    def _end(self) -> pl.Expr:
        return pl.col(LEFT_TIME) + max(self.upper, 0)

    def _pairs(self, left: pl.DataFrame, right: pl.DataFrame) -> pl.DataFrame:
        """Pairs; joined through buckets of time as wide as the interval, of which each touches two at the most."""
        if not left.height or not right.height:
            return pl.DataFrame()
        first, last = (pl.col(LEFT_TIME) + self.lower) // self.width, (pl.col(LEFT_TIME) + self.upper) // self.width
        early, late = left.with_columns(first.alias(_BUCKET)), left.filter(first != last)
        late = late.with_columns(last.alias(_BUCKET))
        found = pl.concat([early, late]).join(
            right.with_columns((pl.col(RIGHT_TIME) // self.width).alias(_BUCKET)), on=[*self.key, _BUCKET]
        )
        apart = pl.col(RIGHT_TIME) - pl.col(LEFT_TIME)
        found = found.filter(apart.is_between(self.lower, self.upper))
        return found.with_columns(pl.max_horizontal(LEFT_TIME, RIGHT_TIME).alias(self.time))

    def _columns(self, results: pl.DataFrame) -> pl.DataFrame:
        if not results.height:
            return pl.DataFrame()
        names = [self.time, *self.sides.left_names.values(), *self.sides.right_names.values()]
        missing = [pl.lit(None).alias(name) for name in names if name not in results.columns]
        return results.with_columns(missing).select(list(dict.fromkeys(names)))


class IntervalJoinReference(OrderedReference):
    """The meaning of an `IntervalJoin`: each record is held against all of the other stream so far."""

    def __init__(self, config: IntervalJoin) -> None:
        super().__init__(config)
        self.sides, self.outer = Sides(config, config.key), config.how == "left"
        self.lower, self.upper = signed_ms(config.lower), signed_ms(config.upper)
        self.left: list[Row] = []
        self.right: list[Row] = []
        self.paired: list[int] = []

    def apply(self, ready: list[Row], progress: Progress) -> list[Row]:
        results = []
        for record in ready:
            mine, others = (self.left, self.right) if self.sides.is_left(record) else (self.right, self.left)
            mine.append(record)
            for other in others:
                left, right = (record, other) if mine is self.left else (other, record)
                apart = right[self.time] - left[self.time]
                if self.sides.key_of(left) == self.sides.key_of(right) and self.lower <= apart <= self.upper:
                    self.paired.append(id(left))
                    later = max(left[self.time], right[self.time])
                    results.append(self.sides.pair(left, right) | {self.time: later})
        for left in self.left if self.outer else []:
            end = left[self.time] + max(self.upper, 0)
            if end < progress.now and id(left) not in self.paired:
                self.paired.append(id(left))
                results.append(self.sides.pair(left, None) | {self.time: end})
        return results
