"""Chooses the ordinary verdicts that are written: around incidents, and of series that a setting or a rule names.

With ``detector.emit = context`` the detectors write all news, and the ordinary verdicts before, during and after an
incident of the same series. Ordinary verdicts of other series are not written, but kept for a while: when an incident
begins, those before its onset are written then.

An incident is where its verdicts say that it is: each verdict on it gives an interval of event time of its series, from
some windows before the onset to the verdict's own window, and some windows longer if it ends the incident. A verdict is
written if it lies in such an interval. This depends on verdicts and event time only, not on micro-batches. Rules with
``store`` and the setting ``detector.context_always`` name series of which all verdicts are written.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from engine.columns.tables import stacked
from engine.spec.duration import END_OF_TIME, NEVER
from engine.state.rescaling import Rescaling
from engine.state.segments import ShardState, pack, unpack
from models.numbers.arrays import Flags
from pipelines.contracts.globs import matches
from pipelines.contracts.records.novelty import JOINED
from pipelines.jobs.detectors.correction_journal import IDENTITY
from pipelines.jobs.detectors.intervals import NO_INTERVALS, SERIES, inside, union
from pipelines.jobs.detectors.kept_verdicts import KeptVerdicts
from pipelines.jobs.detectors.rules import stored
from pipelines.jobs.detectors.rules_in_force import RuleInForce
from pipelines.jobs.detectors.worst import reported

_BEGUN = "ordinary.begun"
_WANTED, _WRITTEN, _COLUMNS = "context/wanted", "context/written", "context/columns"


@dataclass(frozen=True)
class Around:
    """Which ordinary verdicts are written.

    Args:
        before: Those on windows that end in this time before the onset of an incident of their series, milliseconds.
        after: Those on windows that end in this time after its last window, milliseconds.
        reach: How long verdicts are kept that are not written; ``before``, and how much later than its onset an
            incident can be recognised, milliseconds.
        always: Globs of series, as ``machine/metric``, of which all verdicts are written.
        most: The number of series of which a micro-batch writes earlier verdicts; further ones follow in the next.
        many: Verdicts that are kept are divided by machine when there are so many; see `KeptVerdicts`.
        drivers: The number of metrics that an incident of a machine as a whole takes along: those with the largest
            shares in each of its verdicts.
    """

    before: int
    after: int
    reach: int
    always: tuple[str, ...] = ()
    most: int = 1_000
    many: int = 200_000
    drivers: int = 5

    def named(self, verdicts: pl.DataFrame) -> Flags:
        """For each verdict whether its series is one of `always`; shape (n,)."""
        if not self.always or not verdicts.height:
            return np.zeros(verdicts.height, np.bool_)
        series = verdicts.select(SERIES).unique()
        names = series["entity"] + "/" + series["metric"]
        chosen = series.filter(pl.Series(np.logical_or.reduce([matches(glob, names) for glob in self.always])))
        rows = verdicts.select(SERIES).with_row_index("_row").join(chosen, on=SERIES, how="semi")["_row"]
        flags = np.zeros(verdicts.height, np.bool_)
        flags[rows.to_numpy()] = True
        return flags

    def intervals(self, verdicts: pl.DataFrame, earliest: int) -> pl.DataFrame:
        """The intervals of event time in which verdicts are written because of some verdicts on incidents.

        An incident of a machine as a whole also gives them to the metrics that drive it, since its own verdicts have no
        values.

        Args:
            verdicts: Verdicts, of which only those on incidents count.
            earliest: No interval begins before this instant, epoch milliseconds.
        """
        end, onset = pl.col("window_end"), pl.min_horizontal("since", "window_start")
        decided = pl.coalesce("decided", end)  # a later window may have decided what is said of this one
        low = pl.max_horizontal(onset - self.before, decided - self.reach, pl.lit(earliest, pl.Int64))
        closed = (pl.col("incident_state") == "closed").fill_null(False)
        high = end + pl.when(closed).then(self.after).otherwise(0)
        own = verdicts.filter(_of_incident()).with_columns(low=low, high=high).filter(pl.col("low") < pl.col("high"))
        strongest = pl.col("influencers").list.head(self.drivers).list.eval(pl.element().struct.field("key"))
        driving = own.filter(metric=JOINED).with_columns(metric=strongest).explode("metric").drop_nulls("metric")
        return union(own, driving)


class Surroundings:
    """The verdicts of one shard that were not written, and the intervals of event time in which verdicts are written.

    State:

    - that of `KeptVerdicts`: verdicts that were not written; of several for a window the last applies;
    - segments ``context/wanted`` and ``context/written``: the intervals in which verdicts are to be written, and those
      in which they were. The two differ where earlier verdicts of more than `Around.most` series are to be written;
    - segment ``context/columns``: a table without rows that has the columns of verdicts;
    - note ``ordinary.begun``: verdicts on windows that end up to there were written by another setting.

    Args:
        around: Which verdicts are written.
        state: The state of the shard.
        before: The watermark before the micro-batch, epoch milliseconds.
    """

    def __init__(self, around: Around, state: ShardState, before: int) -> None:
        self.around, self.state, self.before = around, state, before
        self.kept = KeptVerdicts(state, around.many)
        self.begun = int(state.notes.setdefault(_BEGUN, before))

    @staticmethod
    def drop(state: ShardState) -> None:
        """Removes from a state what was kept, because another setting of ``detector.emit`` is in force."""
        if _BEGUN in state.notes:
            KeptVerdicts(state).drop()
            del state.notes[_BEGUN]
            for name in (_WANTED, _WRITTEN, _COLUMNS):
                if state.get(name):
                    state.remove(name)

    @staticmethod
    def rescale(states: Rescaling) -> None:
        """Divides verdicts and intervals by machine."""
        if any(_BEGUN in source.notes for source in states.before):
            KeptVerdicts.rescale(states)
            states.segments(_WANTED, _WRITTEN)
            states.copies(_COLUMNS)
            states.note(_BEGUN, max)

    def chosen(self, verdicts: pl.DataFrame, rules: Sequence[RuleInForce], now: int) -> pl.DataFrame:
        """The verdicts to write: some of those of this micro-batch, and earlier ones that were kept.

        Args:
            verdicts: All verdicts of the micro-batch that are new or differ from earlier ones.
            rules: The rules, with the times in which they are in force.
            now: The watermark after the micro-batch, epoch milliseconds.
        """
        old_wanted, old_written = (_intervals(self.state, name) for name in (_WANTED, _WRITTEN))
        if not verdicts.height and old_wanted.equals(old_written):
            return verdicts
        earliest = max(self.begun, max(self.before, NEVER + self.around.reach) - self.around.reach)
        causes = self.around.intervals(verdicts, earliest) if verdicts.height else NO_INTERVALS
        due = union(old_wanted, causes) if causes.height else old_wanted
        write, keep = self._divided(verdicts, rules, due, old_written, earliest)
        self._keep(keep)
        served = self._served(due, old_written, now)
        written = union(old_written, served, _since(due, self.before))
        earlier = self._earlier(served, old_written)
        left = self._forget(due, written, now)
        for name, new, old in zip((_WANTED, _WRITTEN), left, (old_wanted, old_written), strict=True):
            if not new.equals(old):
                _put(self.state, name, new)
        return self._whole(verdicts, write, earlier)

    def _divided(
        self,
        verdicts: pl.DataFrame,
        rules: Sequence[RuleInForce],
        due: pl.DataFrame,
        written: pl.DataFrame,
        earliest: int,
    ) -> tuple[pl.DataFrame, pl.DataFrame]:
        """The verdicts that are written at once, and those that are kept.

        A verdict that replaces a written one is written. One that replaces a kept one is kept, and follows the earlier
        ones of its series if they are wanted.
        """
        if not verdicts.height:
            return verdicts, verdicts
        ends = verdicts["window_end"].to_numpy()
        past = ends <= self.before
        of_incident = verdicts.select(_of_incident()).to_series().to_numpy()
        named = self.around.named(verdicts) | stored(rules, verdicts)
        was_written = inside(verdicts, written)
        write = named | of_incident | np.where(past, was_written | (ends <= earliest), inside(verdicts, due))
        keep = ~named & np.where(past, ~was_written, ~write)
        return verdicts.filter(pl.Series(write)), verdicts.filter(pl.Series(keep))

    def _keep(self, verdicts: pl.DataFrame) -> None:
        filled = [column.name for column in verdicts if column.null_count() < verdicts.height]
        self.kept.add(verdicts.select(filled) if verdicts.height else verdicts)

    def _served(self, due: pl.DataFrame, written: pl.DataFrame, now: int) -> pl.DataFrame:
        """The intervals of the series whose earlier verdicts are written now."""
        past = _until(due, self.before)
        missing = past.join(_until(written, self.before), on=past.columns, how="anti")
        series = missing.select(SERIES).unique(maintain_order=True)
        return past.join(series if now == END_OF_TIME else series.head(self.around.most), on=SERIES, how="semi")

    def _earlier(self, served: pl.DataFrame, written: pl.DataFrame) -> pl.DataFrame:
        """The verdicts that were kept and are written now."""
        first = self._first_missing(served, written) if served.height else END_OF_TIME
        parts = []
        for verdicts in self.kept.since(first, served):
            due = verdicts.filter(pl.Series(inside(verdicts, served)))
            parts.append(due.filter(pl.Series(~inside(due, written))))
        whole = stacked(*parts)
        if not whole.height:
            return whole
        whole = whole.unique(IDENTITY, keep="last", maintain_order=True)
        on_incident = _of_incident() if "incident_state" in whole.columns else pl.lit(False)
        return whole.filter(~on_incident)  # those were written at once

    def _whole(self, verdicts: pl.DataFrame, write: pl.DataFrame, earlier: pl.DataFrame) -> pl.DataFrame:
        """The verdicts to write as one table; those that were kept lack the columns that were null."""
        stored = self.state.get(_COLUMNS)
        columns = unpack(stored)["columns"] if stored else pl.DataFrame()
        if verdicts.width and verdicts.schema != columns.schema:
            columns = verdicts.clear()
            self.state.put(_COLUMNS, pack({"columns": columns}))
        return pl.concat([columns, write, earlier], how="diagonal_relaxed").select(columns.columns)

    def _first_missing(self, served: pl.DataFrame, written: pl.DataFrame) -> int:
        """Nothing is missing of the windows that end up to this instant, epoch milliseconds."""
        until = written.rename({"low": "_low", "high": "_high"}).sort("_low")
        last = served.sort("low").join_asof(
            until, left_on="low", right_on="_low", by=list(SERIES), strategy="backward", check_sortedness=False
        )
        covered = pl.max_horizontal("low", "_high")
        first = last.filter(covered < pl.col("high")).select(covered.min())
        return int(first.item()) if first.item() is not None else END_OF_TIME

    def _forget(self, due: pl.DataFrame, written: pl.DataFrame, now: int) -> tuple[pl.DataFrame, pl.DataFrame]:
        """Removes what is older than `Around.reach`, except what is still to be written; returns the intervals left."""
        oldest = max(now, NEVER + self.around.reach) - self.around.reach
        unserved = due.join(written, on=due.columns, how="anti")
        keeps = pl.col("high") > oldest
        if unserved.height:
            oldest = min(oldest, int(unserved["low"].to_numpy().min()))
            keeps |= pl.struct(SERIES).is_in(unserved.select(pl.struct(SERIES)).to_series().implode())
        self.kept.forget(oldest)
        return due.filter(keeps), written.filter(keeps)


def _of_incident() -> pl.Expr:
    """An expression: true for verdicts that are news, belong to an open incident, or end one."""
    return reported() | (pl.col("incident_state") == "open").fill_null(False)


def _since(intervals: pl.DataFrame, instant: int) -> pl.DataFrame:
    """The parts of some intervals after an instant (epoch milliseconds)."""
    low = pl.max_horizontal("low", pl.lit(instant, pl.Int64))
    return intervals.with_columns(low=low).filter(pl.col("low") < pl.col("high"))


def _until(intervals: pl.DataFrame, instant: int) -> pl.DataFrame:
    """The parts of some intervals up to an instant (epoch milliseconds)."""
    high = pl.min_horizontal("high", pl.lit(instant, pl.Int64))
    return intervals.with_columns(high=high).filter(pl.col("low") < pl.col("high"))


def _intervals(state: ShardState, name: str) -> pl.DataFrame:
    stored = state.get(name)
    return unpack(stored)["intervals"] if stored else NO_INTERVALS


def _put(state: ShardState, name: str, intervals: pl.DataFrame) -> None:
    if intervals.height:
        state.put(name, pack({"intervals": intervals}))
    elif state.get(name):
        state.remove(name)
