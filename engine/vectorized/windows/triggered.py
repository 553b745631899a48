"""Windows of any kind with any trigger, of one shard, vectorised over keys and windows.

The specification is `engine.reference.windows`. A trigger that is evaluated after each record makes *rounds*: all
windows at once take in as many records as they can before their trigger may fire, and then triggers are evaluated. So a
micro-batch takes as many rounds as its busiest window has results.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import polars as pl

from engine.operators.windows import WindowAggregate
from engine.spec.operator import Progress
from engine.state.rescaling import Rescaling
from engine.state.segments import ShardState
from engine.vectorized.processor import Processor, Results, StateCounts
from engine.vectorized.windows.allowed_lateness import closed_until
from engine.vectorized.windows.from_slices import START, take_slices
from engine.vectorized.windows.partials import WINDOW
from engine.vectorized.windows.slices import rescale_slices
from engine.vectorized.windows.table import SEGMENT, WindowTable, rescale_windows
from engine.vectorized.windows.trigger_logic import END, NEW, TriggerLogic, TriggerMoment

Numbers = npt.NDArray[np.int64]
_LANE = "__lane"


class GeneralWindows(Processor):
    """The logic of a `WindowAggregate` of any kind."""

    def __init__(self, config: WindowAggregate) -> None:
        self.config = config
        self.key = list(config.key)
        self.lateness = int(config.allowed_lateness)
        self.logic = TriggerLogic(config.fires)

    def process(self, batch: pl.DataFrame, state: ShardState, progress: Progress) -> Results:
        """Advances processing time, takes in the batch, advances the watermark, and closes windows."""
        before, now, clock = progress.before, progress.now, progress.clock
        taken = take_slices(self.config, state, closed_until(before, self.lateness), before, progress.clock_before)
        if not batch.columns and state.get(SEGMENT) is None and not taken:  # a chain has had no results yet
            return Results(batch, held=StateCounts(open=0))
        table = WindowTable(self.config, self.logic, state, batch.clear(), taken)
        panes = [table.look(TriggerMoment("clock", before, before, clock))] if clock > progress.clock_before else []
        records, late = self._spans(batch, closed_until(before, self.lateness))
        if records.height:
            moment = TriggerMoment("record", before, before, clock)
            records = records if self.config.window.merges else table.number(records)
            for part in self._rounds(records, table, moment):
                table.add(table.merge(part) if self.config.window.merges else part, clock)
                if self.config.fires.by_record:
                    panes.append(table.look(moment))
        moment = TriggerMoment("watermark", before, now, clock)
        panes += [table.look(moment), table.close(closed_until(now, self.lateness), moment)]
        table.save(state)
        fired = [pane for pane in panes if pane is not None]
        held = StateCounts(open=table.windows.height)
        return Results(pl.concat(fired, how="diagonal_relaxed") if fired else pl.DataFrame(), late, held)

    def rescale(self, states: Rescaling) -> None:
        """Divides the open windows and their contents, and slices that have not been taken over yet."""
        rescale_slices(states)
        rescale_windows(states)

    def _spans(self, batch: pl.DataFrame, over: int) -> tuple[pl.DataFrame, pl.DataFrame]:
        """A row for each open span of each record, in order of arrival; and the late records, which have none."""
        if not batch.height:
            return batch, batch
        spans = self.config.window.spans(batch[self.config.time].to_numpy() - self.config.ahead)
        is_open = spans.ends > over
        rows = spans.rows[is_open]
        columns = pl.Series(START, spans.starts[is_open], pl.Int64), pl.Series(END, spans.ends[is_open], pl.Int64)
        missed = (np.bincount(spans.rows, minlength=batch.height) > 0) & (
            np.bincount(rows, minlength=batch.height) == 0
        )
        return batch[rows].with_columns(columns), batch.filter(pl.Series(missed, dtype=pl.Boolean))

    def _rounds(self, records: pl.DataFrame, table: WindowTable, moment: TriggerMoment) -> Iterator[pl.DataFrame]:
        """Splits the records into rounds; after each, triggers must be evaluated."""
        if not self.config.fires.by_record:
            yield records
            return
        if self.config.window.merges:
            keys = records.select(self.key).unique(maintain_order=True).with_row_index(_LANE)
            lanes = (
                records.select(self.key)
                .join(keys, on=self.key, how="left", nulls_equal=True, maintain_order="left")[_LANE]
                .to_numpy()
            )
        else:
            keys, lanes = records.clear(), records[WINDOW].to_numpy()
        order = np.argsort(lanes, kind="stable")
        count = np.bincount(lanes)
        start, done = np.cumsum(count) - count, np.zeros(len(count), np.int64)
        while True:
            busy = np.flatnonzero(done < count)
            if not len(busy):
                return
            room = self._room_of_keys(keys, table) if self.config.window.merges else self._room(table, moment)
            take = np.minimum(room[busy], (count - done)[busy])
            piece = order[_ranges((start + done)[busy], take)]
            done[busy] += take
            yield records[np.sort(piece)]

    def _room(self, table: WindowTable, moment: TriggerMoment) -> Numbers:
        """How many records each window takes in one round."""
        room: Numbers = table.windows.select(self.logic.room(moment).alias("room"))["room"].to_numpy()
        return room if len(room) == table.windows.height else np.full(table.windows.height, room[0])

    def _room_of_keys(self, keys: pl.DataFrame, table: WindowTable) -> Numbers:
        """How many records each key takes in one round, in all its windows together."""
        fresh = self.logic.defaults()
        none = keys.with_columns(e.alias(n) for n, e in fresh.items())
        held = table.windows.drop(NEW, strict=False).join(keys, on=self.key, nulls_equal=True).select(none.columns)
        both = pl.concat([none, held], how="vertical_relaxed")
        return both.group_by(_LANE).agg(self.logic.room_of_all().alias("room")).sort(_LANE)["room"].to_numpy()


def _ranges(starts: Numbers, lengths: Numbers) -> Numbers:
    """The numbers of some ranges, one after the other.

    >>> _ranges(np.array([5, 9]), np.array([2, 1])).tolist()
    [5, 6, 9]
    """
    ends = np.cumsum(lengths)
    return np.repeat(starts - (ends - lengths), lengths) + np.arange(ends[-1] if len(ends) else 0)
