"""How many members each set of replicas has: what is absent while its set goes on with as many others has been ended.

A member counts at the end of each of its windows. Sets are those of generated names, see `engine.columns.replicas`; all
members of one are in the same shard.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from engine.columns.replicas import replicas_of
from engine.columns.tables import stacked
from engine.spec.duration import NEVER
from engine.state.part_log import PartLog
from engine.state.rescaling import Rescaling
from engine.state.segments import ShardState
from models.numbers.arrays import Ints
from pipelines.contracts.records.news import LIVING, PARTITION
from pipelines.contracts.records.novelty import QUIET_KINDS
from pipelines.jobs.detectors.metrics.context import learned_from
from pipelines.jobs.detectors.metrics.state import DetectionState

BEFORE = 600_000
"""The least number of members in this time before the last window of one is the usual one, milliseconds; so that those
that a rolling update starts before it ends others do not count."""

_HORIZONS = 12
"""An absence that takes longer than so many horizons to be certain is one, however the set goes on."""

_NEWS = {
    "entity": pl.String, **dict.fromkeys(("window_start", "window_end"), pl.Int64),
    **dict.fromkeys(("metric", "kind"), pl.String), "record_score": pl.Float64, "actual": pl.Float64,
    "revision": pl.Int64,
}  # fmt: skip
_NONE = np.empty(0, np.int64)
_LOG, _NOTE = "members", "members.since"
_MOST_PARTS = 64


class Members:
    """The numbers of members in a shard.

    State: the log ``members``, whose parts have a row for each set and window end, the column ``entity`` with the name
    of the set, and the newest end as their mark; the note ``members.since``: the first end of all.

    Args:
        state: The state of the shard.
        horizon: How far behind the watermark a window can be judged again, milliseconds.
    """

    def __init__(self, state: ShardState, horizon: int) -> None:
        self.log, self.notes = PartLog(state, _LOG), state.notes
        self._longest = _HORIZONS * horizon
        self._kept = self._longest + 2 * horizon + BEFORE  # what is judged again lies two horizons back at most
        self._new: list[pl.DataFrame] = []
        self._cached: dict[str, tuple[Ints, Ints]] | None = None

    def __bool__(self) -> bool:
        """Whether there are sets of replicas."""
        return bool(self._new or self.log.marks)

    def take(self, windows: pl.DataFrame) -> None:
        """Counts windows that are not counted yet: columns ``entity``, ``window_end`` and ``value``."""
        if not windows.height:
            return
        names = windows["entity"].cast(pl.String).unique()
        sets = {name: found for name in names.to_list() if (found := replicas_of(name)) is not None}
        if not sets:
            return
        came = windows.filter(pl.col("value").is_not_null() & pl.col("value").is_finite())
        own = came.select(pl.col("entity").cast(pl.String), "window_end").unique()
        own = own.with_columns(pl.col("entity").replace_strict(sets, default=None)).drop_nulls("entity")
        if not own.height:
            return
        self.notes.setdefault(_NOTE, int(own["window_end"].to_numpy().min()))
        self._new.append(own.group_by("entity", "window_end").len("n").with_columns(pl.col("n").cast(pl.Int64)))
        self._cached = None

    def goes_on(self, entity: str, last: int, due: int, usual: int) -> bool:
        """Whether the set of a machine goes on with as many others as it had members before the machine fell silent.

        Args:
            entity: The machine.
            last: End of its last window, epoch milliseconds.
            due: When its absence is certain; the others are counted then.
            usual: Its usual time between two windows, milliseconds; a member has one window in each such time.
        """
        name = replicas_of(entity)
        known = self._counts().get(name) if name is not None else None
        if known is None or due - last + usual > self._longest:
            return False
        ends, sums = known

        since = self.notes[_NOTE] + usual - 1
        times = range(last, max(last - BEFORE, since), -max(usual, 1))
        before = [_alive(ends, sums, at, usual) for at in times]
        return bool(before) and 0 < min(before) <= _alive(ends, sums, due, usual)

    def of_news(self, verdicts: pl.DataFrame, models: DetectionState) -> pl.DataFrame:
        """How many members each set has of which some are novel: records of `News`.

        A set has as many as in the last window or in that before: what is absent was there then. Nothing is said of a
        set whose name is like that of a partition, whose machines are counted, too.

        Args:
            verdicts: Verdicts.
            models: The models' state, which knows how often silent machines sent something.
        """
        if not verdicts.height or not self:
            return pl.DataFrame()
        news = learned_from(verdicts.filter(~pl.col("kind").is_in(QUIET_KINDS)))
        names = news["entity"].cast(pl.String)
        usual = pl.Series("usual", models.usual(names.to_list()))
        every = pl.when(pl.col("kind") == "absence").then(usual).otherwise("clock")
        news = news.select(names, "window_end", every=every)
        news = news.group_by("entity", "window_end").agg(pl.col("every").max())
        most: dict[tuple[str, int], int] = {}
        for entity, at, step in news.filter(pl.col("every") > 0).sort("entity", "window_end").rows():
            name = replicas_of(entity)
            ends, sums = self._counts().get(name or "", (_NONE, _NONE))
            if name is not None and len(ends) > 1 and not name.startswith(PARTITION):
                grid = int(np.diff(ends).min())
                usual = max(round(step / grid), 1) * grid
                number = max(_alive(ends, sums, end, usual) for end in (at, at - usual))
                most[name, at] = max(most.get((name, at), 0), number)
        rows = [(name, at, at, LIVING, "normal", 0.0, float(most[name, at]), 0) for name, at in most]
        return pl.DataFrame(rows, _NEWS, orient="row").filter(pl.col("actual") > 0)

    def save(self, now: int) -> None:
        """Stores the new numbers, and forgets those that are old at a watermark."""
        since = max(now, NEVER + self._kept) - self._kept
        self.log.forget([part for part in self.log.parts if part.mark <= since])
        new = stacked(*self._new).filter(pl.col("window_end") > since) if self._new else pl.DataFrame()
        if new.height:
            self._append(new)
        self._new, self._cached = [], None

    @staticmethod
    def rescale(states: Rescaling) -> None:
        """Divides the numbers by set, which has the place of its members."""
        states.log(_LOG, lambda tables: tables["members"].height)
        states.note(_NOTE, max)

    def _append(self, new: pl.DataFrame) -> None:
        self.log.append({"members": new}, int(new["window_end"].to_numpy().max()), new.height)
        while len(self.log.parts) > _MOST_PARTS:
            both = self.log.fewest_neighbours()
            merged = stacked(*(self.log.read(part)["members"] for part in both))
            self.log.replace(both, {"members": merged}, max(part.mark for part in both), merged.height)

    def _counts(self) -> dict[str, tuple[Ints, Ints]]:
        """For each set the ends of windows, ascending, and how many there were before each, one more than ends."""
        if self._cached is None and not self:
            self._cached = {}
        if self._cached is None:
            whole = stacked(*(self.log.read(part)["members"] for part in self.log.parts), *self._new)
            whole = whole.group_by("entity", "window_end").agg(pl.col("n").sum()).sort("entity", "window_end")
            self._cached = {
                str(name): (part["window_end"].to_numpy(), np.append(0, part["n"].cum_sum().to_numpy()))
                for (name,), part in whole.group_by("entity", maintain_order=True)
            }
        return self._cached


def _alive(ends: Ints, sums: Ints, at: int, usual: int) -> int:
    """How many members there are at an instant, each of which has a window in each ``usual`` milliseconds."""
    first, beyond = np.searchsorted(ends, [at - usual, at], "right")
    return int(sums[beyond] - sums[first])
