"""Window join: all pairs of two streams with the same key and in the same window, when the window closes."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from engine.operators.two_sided import TwoSided, pair_columns
from engine.spec.grid import Grid
from engine.windows import Sliding

END = "window_end"


@dataclass(frozen=True)
class WindowJoin(TwoSided):
    """All pairs of each window, with ``window_start`` and ``window_end``.

    A record is late if the first window in which it lies has closed.

    Args:
        window: Tumbling or sliding windows.
    """

    window: Sliding

    def result_ahead(self, ahead: int) -> int:
        return 1

    def result_grid(self, grid: Grid) -> Grid:
        return self.window.ends

    def result_time(self, time: str) -> str:
        return END

    def results(self, columns: pa.Schema) -> pa.Schema | None:
        bounds = [pa.field(name, pa.int64(), False) for name in ("window_start", END)]
        return pa.schema([*pair_columns(self, self.key, columns), *bounds])
