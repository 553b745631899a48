"""Retractions: before a pane that replaces an earlier one, the earlier row is written again as taken back."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl

from engine.vectorized.windows.partials import WINDOW

RETRACTION = "retraction"


class Retractions:
    """The rows that the next panes of the open windows retract, for `AccumulatingAndRetracting`.

    Args:
        rows: The stored rows, with the number of their window in column `WINDOW`; ``None`` if there are none.
    """

    def __init__(self, rows: pl.DataFrame | None = None) -> None:
        self.rows = rows

    def before(self, panes: pl.DataFrame) -> pl.DataFrame:
        """Returns the retractions of the rows that some panes replace, then the panes, and remembers the panes."""
        panes = panes.with_columns(pl.lit(False).alias(RETRACTION))
        earlier = panes.clear() if self.rows is None else self.rows
        replaced = pl.col(WINDOW).is_in(panes[WINDOW].implode())
        retracted = earlier.filter(replaced).with_columns(pl.lit(True).alias(RETRACTION))
        self.rows = pl.concat([earlier.filter(~replaced), panes], how="diagonal_relaxed")
        return pl.concat([retracted, panes], how="diagonal_relaxed")

    def move(self, to: npt.NDArray[np.int64]) -> None:
        """Gives windows other numbers: ``to`` has the new number for each old one; -1 forgets a window.

        Windows that are merged get the same number: the next pane retracts the rows of all of them.
        """
        if self.rows is not None:
            numbers = pl.Series(WINDOW, to[self.rows[WINDOW].to_numpy()], pl.Int64)
            self.rows = self.rows.with_columns(numbers).filter(pl.col(WINDOW) >= 0)
