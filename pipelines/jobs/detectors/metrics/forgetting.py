"""Forgetting: series that have ended leave the state, and machines that have no series left.

A series has ended when it had no window for `detector.forget`, for three times its longest pause so far, and for as
long as `gone` waits; so that a weekly batch is known from week to week. What was met only once may be such a batch: it
is kept for twice the time. All is decided by the ends of windows, at instants that are multiples of a seventh of the
time, a day at most. So neither micro-batches nor shards decide it. A window that comes later begins the series anew.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from engine.spec.duration import END_OF_TIME
from models.evidence.repeats import NEVER
from models.numbers.arrays import Columns, Ints
from models.regimes.silence import NEVER_DUE
from pipelines.contracts.records.novelty import JOINED
from pipelines.jobs.detectors.metrics.gone import WINDOWS
from pipelines.jobs.detectors.metrics.state import DetectionState
from pipelines.jobs.detectors.metrics.workloads import Workloads

_DAY = 86_400_000
_PAUSES = 3
"""A series may pause for so many times as long as ever before."""

_ONCE = 2
"""What has had one window only is kept for so many times as long as other series."""


class Forgetting:
    """Knows when each series ends; it holds no state itself.

    Args:
        after: How long a series must have had no window, milliseconds.
        least_votes: See `Silence.majority`.
        until: Event time from which on no windows are expected, as nothing is judged any more; nothing ends later.
    """

    def __init__(self, after: int, least_votes: float, until: int) -> None:
        self.after, self._least_votes, self._until = after, least_votes, until
        self.every = max(min(after // 7, _DAY), 1)

    @staticmethod
    def new_series(n: int) -> Columns:
        """The columns for n series: end of the last window, -1 without any; longest time between two."""
        return {"ends.last": np.full(n, NEVER, np.int64), "ends.pause": np.zeros(n, np.int64)}

    @staticmethod
    def arrived(state: DetectionState, series: Ints, end: Ints) -> None:
        """Learns from windows, with values or without.

        Args:
            state: The state; changed.
            series: Row of the series of each window, shape (n,).
            end: End of each window; those of a series in order of time, epoch milliseconds, shape (n,).
        """
        last, pause = (state.series.columns[f"ends.{name}"] for name in ("last", "pause"))
        order = np.argsort(series, kind="stable")
        rows, ends = series[order], end[order]
        first = np.append(True, rows[1:] != rows[:-1])
        before = np.where(first, last[rows], np.append(NEVER, ends[:-1]))
        np.maximum.at(pause, rows, np.where(before == NEVER, 0, ends - before))
        np.maximum.at(last, rows, ends)

    def next_due(self, state: DetectionState) -> int:
        """The earliest instant at which a series is forgotten if no windows come; `NEVER_DUE`: at none."""
        first = int(self._ends(state).min(initial=NEVER_DUE))
        due = -(-first // self.every) * self.every
        return due if due <= self._until else NEVER_DUE

    def times(self, state: DetectionState, frame: pl.DataFrame, after: int, until: int) -> list[int]:
        """The instants in (after, until] at which something may be forgotten, epoch milliseconds, ascending.

        Args:
            state: The state after the windows up to ``after``.
            frame: The windows that end in (after, until].
            after: Epoch milliseconds.
            until: Epoch milliseconds.
        """
        last_window = int(frame["window_end"].to_numpy().max()) if frame.height else NEVER
        until = min(last_window if until >= END_OF_TIME else until, self._until)
        if until // self.every <= after // self.every:
            return []
        earliest = int(self._ends(state).min(initial=NEVER_DUE))
        if frame.height:
            earliest = min(earliest, int(frame["window_end"].to_numpy().min()) + self.after)
        if earliest > until:
            return []
        every = self.every
        times = [number * every for number in range(max(after // every + 1, -(-earliest // every)), until // every + 1)]
        before_last = [time for time in times if time < last_window]
        return sorted({*before_last, *times[-1:]})  # without windows between them, the last one does for all

    def returning(self, state: DetectionState, frame: pl.DataFrame) -> pl.DataFrame:
        """The windows of known series that come so late that the series may have been forgotten before.

        Args:
            state: The state.
            frame: Windows, with the columns ``entity``, ``metric`` and ``window_end``.

        Returns:
            Rows of these columns.
        """
        keys = frame.select("entity", "metric").unique(maintain_order=True)
        known = state.series.index.find(keys.cast(pl.String))
        last: Ints = np.full(len(known), NEVER, np.int64)
        last[known >= 0] = _last(state)[known[known >= 0]]
        rows = frame.select("entity", "metric", "window_end").sort("entity", "metric", "window_end")
        rows = rows.join(
            keys.with_columns(_last=pl.Series(last, dtype=pl.Int64)),
            on=["entity", "metric"],
            how="left",
            maintain_order="left",
        )
        before = pl.col("window_end").shift(1).over("entity", "metric").fill_null(pl.col("_last"))
        late = (before != NEVER) & (pl.col("window_end") - before > self.after)
        return rows.filter(late).drop("_last")

    def forget(self, state: DetectionState, now: int, workloads: Workloads) -> None:
        """Removes what has ended by an instant from the state, which then says so; see `DetectionState.forgotten`.

        Args:
            state: The state; changed.
            now: One of `times`.
            workloads: Remember what replicas knew.
        """
        ended = self._ends(state) <= now
        if not ended.any():
            return
        workloads.remember(state, np.flatnonzero(ended))
        keys, machines = state.series.index.keys, state.entities.index.keys
        gone, left = keys.filter(pl.Series(ended)), keys.filter(pl.Series(~ended)).select("entity").unique()
        away = machines.join(left, on="entity", how="anti", maintain_order="left")
        names = [gone, away.with_columns(metric=pl.lit(JOINED))]
        state.forgotten.append(pl.concat(names).with_columns(window_end=pl.lit(now, pl.Int64)))
        state.keep(~ended, left["entity"])

    def _ends(self, state: DetectionState) -> Ints:
        """When each series has ended if no window comes, epoch milliseconds; `NEVER_DUE` for those without any."""
        n = len(state.series)

        def column(name: str) -> Ints:
            return state.series.columns[name][:n].astype(np.int64)

        last, usual = _last(state), column("heard.usual")
        pause = np.maximum(column("ends.pause"), usual)
        span = np.where(pause > 0, np.maximum(self.after, _PAUSES * pause), _ONCE * self.after)
        regular = state.series.columns["heard.votes"][:n].astype(np.float64) >= self._least_votes
        span = np.where(regular, np.maximum(span, (1 + WINDOWS) * usual), span)
        return np.where(last == NEVER, NEVER_DUE, last + span)


def _last(state: DetectionState) -> Ints:
    """End of the last window of each series, epoch milliseconds; -1 without any."""
    last, heard = (
        state.series.columns[name][: len(state.series)].astype(np.int64) for name in ("ends.last", "heard.last")
    )
    return np.where(last == NEVER, heard, last)  # state of earlier versions has the latter only
