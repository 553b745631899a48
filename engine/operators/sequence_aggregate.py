"""Aggregates over windows that the sequence of a key's records decides."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import polars as pl

from engine.aggregates import AnyAggregate, Rate
from engine.columns.packing import alike
from engine.operators.ordered import Ordered, OrderedProcessor, OrderedReference
from engine.operators.sequence_windows import Assign, SequenceWindows
from engine.spec.duration import END_OF_TIME
from engine.spec.operator import Key, Processor, Progress, Reference, Row
from engine.state.segments import ShardState, Tables, pack, unpack
from engine.vectorized.sequences import Sequences
from engine.vectorized.windows.folds import PANE, SUMS, Folds, together


@dataclass(frozen=True)
class SequenceAggregate(Ordered):
    """One result a window: the key, ``window_start``, ``window_end``, ``revision`` (always 0) and the aggregates.

    Args:
        windows: How a key's records are cut.
        aggregates: Result columns.
    """

    windows: SequenceWindows
    aggregates: dict[str, AnyAggregate] = field(default_factory=dict)

    def result_time(self, time: str) -> str:
        return "window_end"

    def build(self) -> Processor:
        return SequenceAggregateProcessor(self)

    def reference(self) -> Reference:
        return SequenceAggregateReference(self)


class SequenceAggregateProcessor(OrderedProcessor):
    """The logic of a `SequenceAggregate`.

    State: that of `Sequences`, and segment ``open`` with the partials of the windows that are open.
    """

    def __init__(self, config: SequenceAggregate) -> None:
        super().__init__(config)
        self.sequences = Sequences(Assign(config.windows), config.key, config.time)
        self.folds, self.by = Folds(config.aggregates), [*config.key, PANE]

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
        spans = closed.select(*by, "window_start", "window_end", pl.lit(0, pl.Int64).alias("revision"))
        return spans.join(self._finished(done), on=by, how="left", nulls_equal=True).drop(PANE)

    def _among(self, tables: Tables, closed: pl.DataFrame) -> dict[str, pl.Series]:
        """Which rows of some tables belong to windows that have closed."""
        *codes, wanted = alike([*tables.values(), closed], self.by)
        return {name: pl.Series(np.isin(some, wanted)) for name, some in zip(tables, codes, strict=True)}

    def _merged(self, parts: list[Tables]) -> Tables:
        merged = {}
        for name, tables in together(parts):
            rows = pl.concat(tables, how="diagonal_relaxed")
            merged[name] = self.folds.merge(name, rows, self.by) if len(tables) > 1 else rows
        return merged

    def _finished(self, tables: Tables) -> pl.DataFrame:
        return self.folds.with_tables(tables[SUMS].select(*self.by, *self.folds.finished()), tables, self.by)


class SequenceAggregateReference(OrderedReference):
    """The meaning of a `SequenceAggregate`.

    * A window closes at its timeout, if the next record comes no earlier; else with a record that breaks it, which
      opens the next; else with the record that fills it.
    * At the end of all input a window without a timeout closes a millisecond after its last record.
    """

    def __init__(self, config: SequenceAggregate) -> None:
        super().__init__(config)
        self.windows, self.aggregates = config.windows, config.aggregates
        self.open: dict[Key, list[Row]] = {}

    def apply(self, ready: list[Row], progress: Progress) -> list[Row]:
        results: list[Row] = []
        for record in ready:
            key, now = self.key_of(record), record[self.time]
            if key in self.open and self.timeout(key) <= now:
                results.append(self.close(key, self.timeout(key)))
            elif key in self.open and self.windows.breaks_one(self.open[key], record):
                results.append(self.close(key, now))
            self.open.setdefault(key, []).append(record)
            if self.windows.full_one(self.open[key]):
                results.append(self.close(key, now + 1))
        for key in list(self.open):
            if self.timeout(key) <= progress.now:
                results.append(self.close(key, self.timeout(key)))
            elif progress.now == END_OF_TIME:
                results.append(self.close(key, self.open[key][-1][self.time] + 1))
        return results

    def timeout(self, key: Key) -> int:
        timeout = self.windows.timeout_ms
        return self.open[key][0][self.time] + timeout if timeout else END_OF_TIME + 1

    def close(self, key: Key, end: int) -> Row:
        records = self.open.pop(key)
        row: Row = dict(zip(self.key, key, strict=True))
        row |= {"window_start": records[0][self.time], "window_end": end, "revision": 0}
        for name, aggregate in self.aggregates.items():
            assert not isinstance(aggregate, Rate)
            row[name] = aggregate.reference(records)
        return row
