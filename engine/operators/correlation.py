"""Rolling correlation of two streams: Pearson's r of the values of one key, aligned in slots of time."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from engine.operators.two_sided import TwoSided, pair_columns
from engine.operators.window_join import END
from engine.spec.columns import require
from engine.spec.errors import NewnormalError
from engine.windows import Sliding

FLAT = 1e-12
"""A column counts as constant if its standard deviation is below this share of its largest absolute value."""


@dataclass(frozen=True)
class Correlation(TwoSided):
    """For each window, the correlation between two streams of the means in its slots.

    A slot in which one of the streams has no value is left out. Results have the key, ``window_start``, ``window_end``,
    ``pairs`` (number of slots used) and ``correlation``, which is null where one of the streams is constant.

    Args:
        x: Column of the left stream.
        y: Column of the right stream.
        window: A slot is as long as one slide: ``Sliding("5m", every="10s")`` correlates 30 pairs, every 10 s.
        least: The smallest number of pairs for which there is a result.

    Raises:
        NewnormalError: ``WINDOW_INVALID`` if a window is no number of slots.
    """

    x: str
    y: str
    window: Sliding
    least: int = 3

    def __post_init__(self) -> None:
        if not self.window.shares_slices:
            what = f"size {self.window.size} is no multiple of every {self.window.every}, the length of a slot"
            raise NewnormalError("WINDOW_INVALID", what, "Correlation(window)", "e.g. 60s every 10s", "no job")

    def result_ahead(self, ahead: int) -> int:
        return 1

    def result_time(self, time: str) -> str:
        return END

    def results(self, columns: pa.Schema) -> pa.Schema | None:
        for column, side in ((self.x, self.left), (self.y, self.right)):
            require([column], pa.schema([columns.field(name) for name in side]), "Correlation")
        keys = [field for field in pair_columns(self, self.key, columns) if field.name in self.key]
        bounds = [pa.field(name, pa.int64(), False) for name in ("window_start", END)]
        return pa.schema([*keys, *bounds, ("pairs", pa.int64()), ("correlation", pa.float64())])
