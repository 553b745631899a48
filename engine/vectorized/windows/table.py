"""The open windows of a shard as one table: a row for each window, with the state of its trigger.

State: segment `SEGMENT` holds the table, the contents of windows and, if panes are retracted, the rows last emitted.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl

from engine.operators.windows import WindowAggregate
from engine.spec.duration import END_OF_TIME
from engine.state.rescaling import Rescaling
from engine.state.segments import ShardState, Tables, joined, pack, unpack
from engine.triggers import AccumulatingAndRetracting, Discarding
from engine.vectorized.beyond import BEYOND
from engine.vectorized.windows.from_slices import PANES, REVISION, START, WINDOWS
from engine.vectorized.windows.partials import WINDOW, Partials
from engine.vectorized.windows.session_merging import merge_sessions
from engine.vectorized.windows.trigger_logic import END, FRESH, NEW, OPENED, TriggerLogic, TriggerMoment

RETRACTION = "retraction"
SEGMENT = "windows"
_EMITTED = "#emitted"


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


class WindowTable:
    """The open windows during one micro-batch; the number of a window is its row.

    Args:
        config: The windows of the job.
        logic: The logic of their trigger.
        state: The state of the shard.
        keys: An empty frame with the key columns, for their types while no window is open.
        taken: Windows that were kept otherwise until now (`take_slices`); mostly empty.
    """

    def __init__(
        self,
        config: WindowAggregate,
        logic: TriggerLogic,
        state: ShardState,
        keys: pl.DataFrame,
        taken: Tables,
    ) -> None:
        self.config, self.logic, self.key = config, logic, list(config.key)
        self.discarding = isinstance(config.panes, Discarding)
        self.retracting = isinstance(config.panes, AccumulatingAndRetracting)
        stored = state.get(SEGMENT)
        tables: Tables = unpack(stored) if stored else dict(taken)
        if WINDOWS not in tables:
            none = keys.select(self.key).with_columns(pl.lit(0, pl.Int64).alias(c) for c in (START, END))
            tables[WINDOWS] = none.clear()
        before = {name.removeprefix("__"): name for name in (FRESH, OPENED)}  # as earlier versions named them
        before = {old: now for old, now in before.items() if old not in self.key}
        self.windows = self._complete(tables.pop(WINDOWS).rename(before, strict=False))
        self.retractions = Retractions(tables.pop(_EMITTED, None))
        self.partials = Partials(config, tables)
        self.changed = bool(taken)

    def _complete(self, windows: pl.DataFrame) -> pl.DataFrame:
        """Adds the columns that new windows, or windows of an older state, lack."""
        defaults = self.logic.defaults() | {PANES: pl.lit(0, pl.Int64), REVISION: pl.lit(0, pl.Int64)}
        return windows.with_columns(e.alias(n) for n, e in defaults.items() if n not in windows.columns)

    def number(self, records: pl.DataFrame) -> pl.DataFrame:
        """Adds to records with their span the number of their window, and opens new windows."""
        by = [*self.key, START, END]
        known = self.windows.select(by).with_row_index("__known")
        spans = records.select(by).unique(maintain_order=True)
        spans = spans.join(known, on=by, how="left", nulls_equal=True, maintain_order="left")
        new = pl.col("__known").is_null()
        number = pl.when(new).then(self.windows.height + new.cum_sum() - 1).otherwise(pl.col("__known").cast(pl.Int64))
        spans = spans.with_columns(number.cast(pl.Int64).alias(WINDOW))
        opened = self._complete(spans.filter(new).select(by))
        self.windows = pl.concat([self.windows, opened.select(self.windows.columns)], how="vertical_relaxed")
        numbered = records.join(spans.drop("__known"), on=by, how="left", nulls_equal=True, maintain_order="left")
        return numbered.drop(START, END)

    def merge(self, records: pl.DataFrame) -> pl.DataFrame:
        """Adds to records with their span the number of the session into which the span is merged."""
        opened = self._complete(records.select(*self.key, START, END))
        columns = self.logic.merged() | {PANES: pl.col(PANES).max(), REVISION: pl.col(REVISION).max()}
        merged = merge_sessions(self.windows.drop(NEW, strict=False), opened, self.key, columns)
        self._renumber(merged.moved)
        self.windows = merged.windows
        return records.drop(START, END).with_columns(merged.number)

    def add(self, records: pl.DataFrame, clock: int) -> None:
        """Puts records into their windows."""
        new = np.bincount(records[WINDOW].to_numpy(), minlength=self.windows.height)
        self.windows = self.windows.with_columns(pl.Series(NEW, new, pl.Int64))
        self.windows = self.windows.with_columns(e.alias(n) for n, e in self.logic.took(clock).items())
        self.partials.add(records)
        self.changed = True

    def look(self, moment: TriggerMoment) -> pl.DataFrame | None:
        """Evaluates the triggers of all windows, fires those that are ready, and returns their panes."""
        if not self.windows.height:
            return None
        seen = pl.col(NEW) > 0 if moment.kind == "record" else pl.lit(True)
        if self.logic.customs:
            self._ask(moment, seen & (pl.col(FRESH) > 0))
        on_time = pl.lit(False)
        if moment.kind == "watermark" and not self.discarding:
            on_time = (pl.col(END) <= moment.now) & (pl.col(END) > moment.before)
        fires = seen & self.logic.ready(moment) & ((pl.col(FRESH) > 0) | on_time)
        self.windows = self.windows.with_columns(fires.alias("__fires"))
        moved = self.logic.looked_at(moment, pl.col("__fires"), seen)
        self.windows = self.windows.with_columns(e.alias(n) for n, e in moved.items())
        self.changed |= bool(moved)
        fired = self.windows["__fires"]
        self.windows = self.windows.drop("__fires", *self.logic.customs)
        return self.fire(fired, moment) if fired.any() else None

    def _ask(self, moment: TriggerMoment, seen: pl.Expr) -> None:
        """Evaluates the user's own triggers for the windows in ``seen``."""
        numbered = self.windows.with_row_index(WINDOW).with_columns(pl.col(WINDOW).cast(pl.Int64)).filter(seen)
        shown = numbered.select(WINDOW, *self.key, START, END, pl.col(FRESH).alias("fresh"))
        clocks = {"watermark": moment.now, "clock": moment.clock}
        shown = shown.with_columns(pl.lit(v, pl.Int64).alias(n) for n, v in clocks.items())
        results = self.partials.results(shown[WINDOW]).drop(BEYOND, strict=False)
        full = shown.join(results, on=WINDOW, how="left", maintain_order="left")
        for name, trigger in self.logic.customs.items():
            answer = np.zeros(self.windows.height, bool)
            if full.height:
                answer[full[WINDOW].to_numpy()] = trigger.should_fire(full.drop(WINDOW)).to_numpy()
            self.windows = self.windows.with_columns(pl.Series(name, answer))

    def fire(self, fired: pl.Series, moment: TriggerMoment) -> pl.DataFrame:
        """Fires some windows: returns their panes, after the retractions of earlier ones."""
        numbered = self.windows.with_row_index(WINDOW).with_columns(pl.col(WINDOW).cast(pl.Int64))
        windows = numbered.filter(fired).with_columns(moment.timing().alias("timing"))
        results = windows.join(self.partials.results(windows[WINDOW]), on=WINDOW, how="left", maintain_order="left")
        names = [WINDOW, *self.key, START, END, *self.config.aggregates, PANES, "timing", REVISION]
        names += [BEYOND] if BEYOND in results.columns else []
        panes = results.select(names)
        if self.retracting:
            panes = self.retractions.before(panes)
        if self.discarding:
            self.partials.clear(windows[WINDOW], self.windows.height)
        not_early = (moment.timing() != "early").cast(pl.Int64)
        after = {PANES: pl.col(PANES) + 1, REVISION: pl.col(REVISION) + not_early}
        after |= {FRESH: pl.lit(0, pl.Int64), OPENED: pl.lit(END_OF_TIME, pl.Int64)}
        self.windows = self.windows.with_columns(
            pl.when(fired).then(e).otherwise(pl.col(n)).alias(n) for n, e in after.items()
        )
        self.changed = True
        return panes.drop(WINDOW)

    def close(self, until: int, moment: TriggerMoment) -> pl.DataFrame | None:
        """Closes the windows that end up to an instant; windows with records that were in no pane fire."""
        gone = self.windows[END] <= until
        if not gone.any():
            return None
        rest = gone & (self.windows[FRESH] > 0)
        panes = self.fire(rest, moment) if rest.any() else None
        kept = ~gone.to_numpy()
        self.windows = self.windows.filter(~gone)
        self._renumber(np.where(kept, np.cumsum(kept) - 1, -1))
        self.changed = True
        return panes

    def _renumber(self, to: npt.NDArray[np.int64]) -> None:
        self.partials.move(to)
        self.retractions.move(to)

    def save(self, state: ShardState) -> None:
        """Writes the table and the contents to the state if they have changed."""
        if not self.changed:
            return
        if not self.windows.height:
            state.remove(SEGMENT)
            return
        tables = {WINDOWS: self.windows.drop(NEW, strict=False)} | self.partials.whole()
        if self.retractions.rows is not None:
            tables[_EMITTED] = self.retractions.rows
        state.put(SEGMENT, pack(tables))


def rescale_windows(states: Rescaling) -> None:
    """Divides the open windows of all shards by key; windows get new numbers, as the number of a window is its row."""
    for shard, state, sources in states.shards():
        height, parts = 0, list[Tables]()
        for value in [value for source in sources if (value := source.get(SEGMENT)) is not None]:
            tables = unpack(value)
            kept = states.mine(tables[WINDOWS], shard)
            to = pl.Series(np.where(kept, np.cumsum(kept) - 1 + height, -1), dtype=pl.Int64)
            piece = {name: table for name, table in tables.items() if name != WINDOWS}
            moved = {name: table.with_columns(to[table[WINDOW]].alias(WINDOW)) for name, table in piece.items()}
            parts.append({name: table.filter(pl.col(WINDOW) >= 0) for name, table in moved.items()})
            parts[-1][WINDOWS] = tables[WINDOWS].filter(kept)
            height += int(kept.sum())
        if height:
            state.put(SEGMENT, pack(joined(parts)))
