"""The contents of windows: partial aggregates or, with an evictor, the records.

What a batch adds stays a piece of its own in memory until results are asked for, or all is stored as one. The column
`WINDOW` of each table is the number of the row's window.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl
import polars.selectors as cs

from engine.operators.windows import WindowAggregate
from engine.state.segments import Tables, tables_by_name
from engine.vectorized.beyond import BEYOND
from engine.vectorized.windows.folds import PARTIAL, SUMS, Folds
from engine.windows.evictors import FROM_END, NEWEST

WINDOW = PARTIAL
RECORDS = "records"


class Partials:
    """The contents of some windows.

    Args:
        config: The aggregates and the evictor.
        tables: The result of an earlier `whole`.
    """

    def __init__(self, config: WindowAggregate, tables: Tables) -> None:
        self.config = config
        self.pieces = [tables] if tables else []
        self.folds = Folds(config.aggregates)

    def add(self, records: pl.DataFrame) -> None:
        """Adds records, each with the number of its window."""
        self.pieces.append({RECORDS: records} if self.config.evictor else self._lift(records))

    def move(self, to: npt.NDArray[np.int64]) -> None:
        """Renumbers windows: ``to`` has the new number for each old one, -1 forgets; equal numbers are merged."""
        moved = []
        for tables in self.pieces:
            piece = {}
            for name, table in tables.items():
                now = pl.Series(WINDOW, to[table[WINDOW].to_numpy()], pl.Int64)
                piece[name] = table.with_columns(now).filter(pl.col(WINDOW) >= 0)
            moved.append(piece)
        self.pieces = moved

    def clear(self, windows: pl.Series, among: int) -> None:
        """Clears the contents of some windows, of ``among`` windows in all."""
        to = np.arange(among)
        to[windows.to_numpy()] = -1
        self.move(to)

    def results(self, windows: pl.Series) -> pl.DataFrame:
        """The aggregates of some windows: a row for each window, with its number."""
        tables = self._merged(
            [{n: t.filter(t[WINDOW].is_in(windows.implode())) for n, t in p.items()} for p in self.pieces]
        )
        if self.config.evictor:
            tables = self._lift(tables[RECORDS])
        sums = windows.to_frame(WINDOW).join(
            self.folds.complete(tables[SUMS], [WINDOW]), on=WINDOW, how="left", maintain_order="left"
        )
        result = sums.select(WINDOW, *self.folds.finished())
        columns = cs.by_name(WINDOW, *self.config.aggregates, BEYOND, require_all=False)
        return self.folds.with_tables(result, tables, [WINDOW]).select(columns)

    def whole(self) -> Tables:
        """The merged tables of all windows."""
        return self._merged(self.pieces)

    def _merged(self, pieces: list[Tables]) -> Tables:
        merged = {}
        for name, tables in tables_by_name(pieces):
            rows = pl.concat(tables, how="diagonal_relaxed")
            merged[name] = self._kept(rows) if name == RECORDS else self.folds.merge(name, rows, [WINDOW])
        return merged

    def _lift(self, records: pl.DataFrame) -> Tables:
        return self.folds.lift(records, [])

    def _kept(self, records: pl.DataFrame) -> pl.DataFrame:
        """The records that the evictor keeps, in event-time order."""
        assert self.config.evictor is not None
        time = self.config.time
        names = [c for c in sorted(records.columns) if c != WINDOW]
        texts = {c: pl.col(c).cast(pl.String) for c in names if records[c].dtype == pl.Categorical}
        order = [pl.col(WINDOW), pl.col(time), *(texts.get(c, pl.col(c)) for c in names)]
        rows = records.sort(order, nulls_last=False)
        from_end = pl.len().over(WINDOW) - 1 - pl.int_range(pl.len()).over(WINDOW)
        marked = rows.with_columns(from_end.alias(FROM_END), pl.col(time).max().over(WINDOW).alias(NEWEST))
        return marked.filter(self.config.evictor.keep(time)).drop(FROM_END, NEWEST)
