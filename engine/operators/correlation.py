"""Rolling correlation of two streams: Pearson's r of the values of one key, aligned in slots of time."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import polars as pl

from engine.operators.ordered import OrderedProcessor, OrderedReference
from engine.operators.two_sided import LEFT_TIME, RIGHT_TIME, Sides, TwoSided, together
from engine.operators.window_join import END, ends
from engine.spec.operator import Key, Processor, Progress, Reference, Row
from engine.state.segments import ShardState, pack, unpack
from engine.windows import Sliding

FLAT = 1e-12
"""A standard deviation below this share of the largest value is rounding: there is no correlation with a constant."""


@dataclass(frozen=True)
class Correlation(TwoSided):
    """Of each window, the correlation of the means of both streams in its slots; those without one are left out.

    Results: the key, ``window_start``, ``window_end``, ``pairs`` (slots with both) and ``correlation``; that is null
    where one of the two is constant.

    Args:
        x: Column of the left stream.
        y: Column of the right stream.
        window: One slot is one slide: ``Sliding("5m", every="10s")`` correlates 30 pairs, every 10 s.
        least: Fewest pairs for a result.
    """

    x: str
    y: str
    window: Sliding
    least: int = 3

    def result_time(self, time: str) -> str:
        return END

    def build(self) -> Processor:
        return CorrelationProcessor(self)

    def reference(self) -> Reference:
        return CorrelationReference(self)


class CorrelationProcessor(OrderedProcessor):
    """The logic of a `Correlation`.

    State: segment ``pairs``, both means of each slot that an open window covers.
    """

    instant: ClassVar[bool] = False

    def __init__(self, config: Correlation) -> None:
        super().__init__(config)
        self.sides, self.config, self.window = Sides(config, config.key), config, config.window

    def due(self) -> pl.Expr:
        """The end of a record's slot."""
        return self.window.pane_start(pl.col(self.time)) + self.window.pane_ms

    def apply(self, ready: pl.DataFrame, state: ShardState, progress: Progress) -> pl.DataFrame:
        """The correlations of the windows that the watermark passes."""
        stored = state.get("pairs")
        pairs = together(unpack(stored)["pairs"] if stored else pl.DataFrame(), self._pairs(ready))
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
        """Both means of each slot that has both."""
        left, right = self.sides.cut(ready)
        if not left.height or not right.height:
            return pl.DataFrame()
        right_name = self.sides.right_names[self.config.y]
        x, y = self._means(left, LEFT_TIME, self.config.x, "x"), self._means(right, RIGHT_TIME, right_name, "y")
        return x.join(y, on=[*self.key, "slot"])

    def _means(self, frame: pl.DataFrame, time: str, column: str, name: str) -> pl.DataFrame:
        slot = self.window.pane_start(pl.col(time)).alias("slot")
        values = frame.select(*self.key, slot, pl.col(column).cast(pl.Float64).alias(name)).drop_nulls(name)
        return values.sort(name).group_by(*self.key, "slot", maintain_order=True).agg(pl.col(name).mean())


class CorrelationReference(OrderedReference):
    """The meaning of a `Correlation`."""

    instant: ClassVar[bool] = False

    def __init__(self, config: Correlation) -> None:
        super().__init__(config)
        self.sides, self.config, self.window = Sides(config, config.key), config, config.window
        self.records: list[Row] = []

    def due(self, record: Row) -> int:
        return self.window.pane_start(int(record[self.time])) + self.window.pane_ms

    def apply(self, ready: list[Row], progress: Progress) -> list[Row]:
        self.records += ready
        slots: dict[Key, dict[int, tuple[list[float], list[float]]]] = {}
        for record in self.records:
            mine = slots.setdefault(self.key_of(record), {})
            values = mine.setdefault(self.window.pane_start(record[self.time]), ([], []))
            left = self.sides.is_left(record)
            value = record[self.config.x if left else self.config.y]
            if value is not None:
                values[0 if left else 1].append(value)
        return [row for key, mine in slots.items() for row in self.windows(key, mine, progress)]

    def windows(self, key: Key, slots: dict[int, tuple[list[float], list[float]]], progress: Progress) -> list[Row]:
        means = {s: (_mean(xs), _mean(ys)) for s, (xs, ys) in slots.items() if xs and ys}
        every = sorted({end for s in means for end in self.window.ends_of(s)})
        rows = []
        for end in every:
            inside = [pair for s, pair in sorted(means.items()) if end - self.window.size_ms <= s < end]
            if progress.before < end <= progress.now and len(inside) >= self.config.least:
                row = dict(zip(self.key, key, strict=True)) | {"window_start": end - self.window.size_ms, END: end}
                rows.append(row | {"pairs": len(inside), "correlation": pearson(inside)})
        return rows


def _mean(values: list[float]) -> float:
    return math.fsum(values) / len(values)


def pearson(pairs: list[tuple[float, float]]) -> float | None:
    """Pearson's correlation; ``None`` if one side is constant.

    >>> round(pearson([(1, 2), (2, 4), (3, 6)]), 9)
    1.0
    """
    xs, ys = [x for x, _ in pairs], [y for _, y in pairs]
    dx, dy = [x - _mean(xs) for x in xs], [y - _mean(ys) for y in ys]
    sx, sy = math.sqrt(math.fsum(d * d for d in dx)), math.sqrt(math.fsum(d * d for d in dy))
    n = math.sqrt(len(pairs))
    if sx / n <= FLAT * max(map(abs, xs)) or sy / n <= FLAT * max(map(abs, ys)):
        return None
    return max(-1.0, min(1.0, math.fsum(a * b for a, b in zip(dx, dy, strict=True)) / (sx * sy)))
