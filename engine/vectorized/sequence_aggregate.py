"""Aggregates over count windows and delta windows, over columns."""

from __future__ import annotations

import numpy as np
import polars as pl

from engine.columns.packing import alike
from engine.operators.sequence_aggregate import SequenceAggregate
from engine.operators.windows import BOUNDS
from engine.spec.operator import Progress
from engine.state.rescaling import Rescaling
from engine.state.segments import ShardState, Tables, pack, tables_by_name, unpack
from engine.vectorized.ordered import OrderedProcessor
from engine.vectorized.sequence_windows import Assign
from engine.vectorized.sequences import Sequences
from engine.vectorized.windows.folds import PARTIAL, SUMS, Folds


class SequenceAggregateProcessor(OrderedProcessor):
    """The logic of a `SequenceAggregate`.

    State: the state of `Sequences`; segment ``open`` holds the partials of the open windows.
    """

    def __init__(self, config: SequenceAggregate) -> None:
        super().__init__(config)
        self.sequences = Sequences(Assign(config.windows), config.key, config.time)
        self.folds, self.by = Folds(config.aggregates), [*config.key, PARTIAL]

    def apply(self, ready: pl.DataFrame, state: ShardState, progress: Progress) -> pl.DataFrame:
        """The windows that close."""
        records, closed = self.sequences.run(ready, state, progress)
        if not records.height and not closed.height:
            return pl.DataFrame()
        stored = state.get("open")
        parts = [unpack(stored)] if stored else []
        if records.height:
            parts.append(self.folds.lift(records, self.key))
        tables, by = self._merged(parts), self.by
        if not closed.height:
            state.put("open", pack(tables))
            return pl.DataFrame()
        over = self._among(tables, closed)
        rest = {name: t.filter(~over[name]) for name, t in tables.items()}
        if rest[SUMS].height:
            state.put("open", pack(rest))
        else:
            state.remove("open")
        done = {name: t.filter(over[name]) for name, t in tables.items()}
        bounds = [pl.col(name) - self.ahead for name in BOUNDS]
        spans = closed.select(*by, *bounds, pl.lit(0, pl.Int64).alias("revision"))
        return spans.join(self._finished(done), on=by, how="left", nulls_equal=True).drop(PARTIAL)

    def _among(self, tables: Tables, closed: pl.DataFrame) -> dict[str, pl.Series]:
        """For each table, which of its rows belong to windows that have closed."""
        *codes, asked = alike([*tables.values(), closed], self.by)
        return {name: pl.Series(np.isin(own, asked)) for name, own in zip(tables, codes, strict=True)}

    def _merged(self, parts: list[Tables]) -> Tables:
        merged = {}
        for name, tables in tables_by_name(parts):
            rows = pl.concat(tables, how="diagonal_relaxed")
            merged[name] = self.folds.merge(name, rows, self.by) if len(tables) > 1 else rows
        return merged

    def _finished(self, tables: Tables) -> pl.DataFrame:
        sums = self.folds.complete(tables[SUMS], self.by)
        return self.folds.with_tables(sums.select(*self.by, *self.folds.finished()), tables, self.by)

    def rescale_own(self, states: Rescaling) -> None:
        """Divides the open windows and their partials."""
        self.sequences.rescale(states)
        states.segments("open")
