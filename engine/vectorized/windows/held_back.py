"""Lateness of windows where the log of a record's own partition decides it, for all kinds of windows.

The watermark in the log of a record's partition may be ahead of the shard's. A record that comes too late for all its
windows by that is set apart at once. A record that comes too late for some of them is held back until the watermark of
the shard is there too: these windows are complete then, and take nothing in any more. So which records a window has
does not depend on how far the shard had come.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import polars as pl

from engine.operators.windows import WindowAggregate
from engine.spec.operator import Progress
from engine.state.rescaling import Rescaling
from engine.state.segments import ShardState
from engine.vectorized.ordered import Waiting
from engine.vectorized.processor import Processor, Results
from engine.vectorized.windows.allowed_lateness import all_closed_until, closed_until

UNTIL = "__until"
Times = npt.NDArray[np.int64]


class HeldBack(Processor):
    """Windows whose records are taken in when the watermark of the shard decides their lateness as their log does.

    State: that of `Waiting`, and that of the windows.

    Args:
        config: The windows.
        windows: Their logic, which decides lateness by the watermark of the shard.
    """

    def __init__(self, config: WindowAggregate, windows: Processor) -> None:
        self.config, self.windows, self.lateness = config, windows, int(config.allowed_lateness)

    def process(self, batch: pl.DataFrame, state: ShardState, progress: Progress) -> Results:
        """Takes in the batch in one step, or in several if records were held back until a watermark in between."""
        late = batch.clear()
        waiting = late.with_columns(pl.lit(0, pl.Int64).alias(UNTIL)).clear()
        if progress.in_log is not None and batch.height:
            until = self._until(batch[self.config.time].to_numpy() - self.config.ahead, progress)
            if until is not None:
                frame = batch.with_columns(pl.Series(UNTIL, until, pl.Int64))
                too_late, behind = pl.col(UNTIL) == _NEVER_TAKEN, pl.col(UNTIL) > progress.before
                late = batch.filter(frame.select(too_late).to_series())
                waiting = frame.filter(~too_late & behind)
                batch = frame.filter(~too_late & ~behind).drop(UNTIL)
        held = Waiting(state).release(waiting, pl.col(UNTIL), progress.now)
        steps = [self.windows.process(records, state, step) for records, step in _steps(batch, held, progress)]
        records = [results.records for results in steps if results.records.height]
        missed = [late, *(results.late for results in steps if results.late is not None)]
        lost = [records for records in missed if records.height]
        return Results(
            pl.concat(records, how="diagonal_relaxed") if records else steps[-1].records,
            pl.concat(lost, how="diagonal_relaxed") if lost else late,
            steps[-1].held,
        )

    def rescale(self, states: Rescaling) -> None:
        """Divides the records that wait, and the state of the windows."""
        states.log("held", lambda tables: tables["records"].height)
        self.windows.rescale(states)

    def _until(self, times: Times, progress: Progress) -> Times | None:
        """Up to which watermark of the shard each record is held back; `_NEVER_TAKEN`: it is too late.

        Returns:
            ``None`` if every record may be taken in at once.
        """
        most = max(progress.before, int(np.max(np.asarray(progress.in_log))))
        if times.min() >= closed_until(most, self.lateness):
            return None
        passed = progress.passed(len(times))
        closed = all_closed_until(passed, self.lateness)
        (old,) = np.nonzero(times < closed)  # all others lie in open windows only
        if not len(old):
            return None
        until = np.full(len(times), _AT_ONCE, np.int64)
        spans = self.config.window.spans(times[old])
        rows, over = old[spans.rows], spans.ends <= closed[old][spans.rows]
        is_open, is_over = (np.bincount(rows[flags], minlength=len(times)) > 0 for flags in (~over, over))
        until[old] = np.where(is_open[old] | ~is_over[old], _AT_ONCE, _NEVER_TAKEN)  # neither: it lies in no window
        if self.config.window.merges:  # an earlier session, of other records, may be over
            undecided = old[is_open[old]]
            until[undecided] = passed[undecided]
        else:
            part = is_over[rows] & is_open[rows] & over
            np.maximum.at(until, rows[part], spans.ends[part] + self.lateness)
        return until


_AT_ONCE, _NEVER_TAKEN = -(2**63), 2**63 - 1


def _steps(batch: pl.DataFrame, held: pl.DataFrame, progress: Progress) -> Iterator[tuple[pl.DataFrame, Progress]]:
    """The batch, and then the records that were held back, each when the watermark is as far as they waited for."""
    step = replace(progress, in_log=None)
    for (until,), released in sorted(held.partition_by(UNTIL, as_dict=True).items()) if held.height else []:
        yield batch, replace(step, now=until)
        batch, step = released.drop(UNTIL), replace(step, before=until, clock_before=progress.clock)
    yield batch, step
