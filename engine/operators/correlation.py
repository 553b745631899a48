"""Rolling correlation of two streams: Pearson's r of the values of one key, aligned in slots of time."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from engine.operators.two_sided import TwoSided, pair_columns
from engine.operators.window_join import END
from engine.spec.columns import require
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

    def results(self, given: pa.Schema) -> pa.Schema | None:
        for column, side in ((self.x, self.left), (self.y, self.right)):
            require([column], pa.schema([given.field(name) for name in side]), "Correlation")
        keys = [field for field in pair_columns(self, self.key, given) if field.name in self.key]
        bounds = [pa.field(name, pa.int64(), False) for name in ("window_start", END)]
        return pa.schema([*keys, *bounds, ("pairs", pa.int64()), ("correlation", pa.float64())])
