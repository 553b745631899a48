"""The open windows of a state that was kept in slices: a trigger has been added to the job, so each gets a row."""

from __future__ import annotations

import polars as pl

from engine.aggregates.aggregate import COUNT
from engine.operators.windows import WindowAggregate
from engine.spec.duration import END_OF_TIME
from engine.state.part_log import PartLog
from engine.state.segments import ShardState, Tables, joined, unpack
from engine.vectorized.windows.blocks import forget_blocks
from engine.vectorized.windows.folds import PARTIAL, SUMS, Folds
from engine.vectorized.windows.partials import WINDOW
from engine.vectorized.windows.trigger_logic import END, FRESH, OPENED

START, PANES, REVISION, WINDOWS = "window_start", "pane", "revision", "#windows"


def take_slices(config: WindowAggregate, state: ShardState, closed: int, before: int, clock: int) -> Tables:
    """Takes the slices out of a state; returns the contents of their windows and, in table `WINDOWS`, the windows.

    Windows whose end the watermark has passed have had their results: the on-time one, and one for each revision.

    Args:
        config: The windows, which are aligned.
        state: The state of the shard.
        closed: Windows that end up to this instant are closed for good.
        before: The watermark, epoch milliseconds.
        clock: Processing time; when the first record of a window came is not known.
    """
    if not state.notes.get("slices/"):
        return {}
    log = PartLog(state, "slices")
    window, by, parts = config.sliding, [*config.key, START, END], list[Tables]()
    for part in log.parts:
        ends = pl.Series(END, window.ends_between(part.mark, closed, part.mark + window.size_ms), pl.Int64)
        if len(ends):
            starts = pl.DataFrame({START: ends - window.size_ms, END: ends})
            parts.append({name: table.join(starts, how="cross") for name, table in log.read(part).items()})
    log.forget(log.parts)
    forget_blocks(state)
    tables = joined(parts)
    if SUMS not in tables:
        return {}
    folds, contents = Folds(config.aggregates), Tables()
    sums = folds.complete(tables[SUMS], by)
    windows = sums.group_by(by, maintain_order=True).agg(pl.col(COUNT).sum().alias(FRESH))
    windows = windows.with_row_index(WINDOW).with_columns(pl.col(WINDOW).cast(pl.Int64))
    for name in (SUMS, *folds.tables):
        if name in tables:
            rows = tables[name].join(windows.select(*by, WINDOW), on=by, how="left", nulls_equal=True)
            contents[name] = folds.merge(name, rows.drop(by), [PARTIAL])
    windows = windows.join(
        _revisions(state, windows.select(config.key)), on=[*config.key, END], how="left", nulls_equal=True
    )
    fired = pl.col(END) <= before
    panes = pl.when(fired).then(pl.col(REVISION).fill_null(0) + 1).otherwise(0).cast(pl.Int64)
    windows = windows.sort(WINDOW).select(
        *by,
        pl.when(fired).then(0).otherwise(pl.col(FRESH)).cast(pl.Int64).alias(FRESH),
        pl.when(fired).then(END_OF_TIME).otherwise(clock).cast(pl.Int64).alias(OPENED),
        panes.alias(PANES),
        panes.alias(REVISION),
    )
    return {WINDOWS: windows, **contents}


def _revisions(state: ShardState, keys: pl.DataFrame) -> pl.DataFrame:
    """The last revision of each key and window that late records have changed; they are taken out of the state."""
    revisions = [keys.clear().with_columns(pl.lit(0, pl.Int64).alias(name) for name in (REVISION, END))]
    for end in state.notes.pop("late", []):
        stored = state.get(f"late/{end}")
        state.remove(f"late/{end}")
        if stored:
            revisions.append(unpack(stored)[REVISION].with_columns(pl.lit(end, pl.Int64).alias(END)))
    return pl.concat(revisions, how="vertical_relaxed")
