"""Patterns over columns: in each round, the runs of all keys meet the next record of their key."""

from __future__ import annotations

from functools import reduce

import numpy as np
import polars as pl

from engine.columns.rounds import in_order, rounds
from engine.columns.tables import stacked
from engine.operators.pattern import Event, Pattern
from engine.spec.expressions import values
from engine.spec.operator import Progress
from engine.state.rescaling import Rescaling
from engine.state.segments import ShardState, pack, unpack
from engine.vectorized.ordered import OrderedProcessor

_CODE, _STAGE, _START, _SEQ, _BEGINS, _HIT = "__code", "__stage", "__start", "__seq", "__begins", "__hit"
_LAST, _UNTIL = "__last", "__until"


class PatternProcessor(OrderedProcessor):
    """The logic of a `Pattern`.

    State: segment ``runs`` holds a row for each run: its key, the records it has taken, and their number. The note
    ``rounds`` counts rounds, in which each key has met one record, so it orders the records of a key.
    """

    def __init__(self, config: Pattern) -> None:
        super().__init__(config)
        self.config, self.within, self.taken = config, config.within_ms, config.taken
        self.names = [self.time, *(c for c in config.columns if c != self.time)]
        self.skips_absences = config.ends_in_absence and config.after == "past_last"
        self.captured = [f"{e.name}_{c}" for e in self.taken for c in self.names]

    def apply(self, ready: pl.DataFrame, state: ShardState, progress: Progress) -> pl.DataFrame:
        """The matches."""
        stored = state.get("runs")
        if not ready.height and not stored:
            return pl.DataFrame()
        runs = unpack(stored)["runs"] if stored else pl.DataFrame()
        matches: list[pl.DataFrame] = []
        if ready.height:
            self.seq = state.notes.get("rounds", 0)
            runs, matches = self._advance(runs, ready)
            state.notes["rounds"] = self.seq
        if runs.height:
            over = pl.col(_START) + self.within < progress.now
            runs, late = self._expire(runs.filter(over), runs.filter(~over))
            matches += late
        if runs.height:
            state.put("runs", pack({"runs": runs.drop(_CODE, strict=False)}))
        else:
            state.remove("runs")
        matched = stacked(*matches)
        return matched.select(*self.key, self.time, *self.captured) if matched.height else matched

    def _advance(self, runs: pl.DataFrame, ready: pl.DataFrame) -> tuple[pl.DataFrame, list[pl.DataFrame]]:
        """Applies the records to the runs; returns the runs that are left, and the matches."""
        live = self._with_begins(ready).filter(_BEGINS).select(self.key)
        if runs.height:
            live = pl.concat([live, runs.select(self.key)], how="vertical_relaxed")
        keys = live.unique(maintain_order=True).with_row_index(_CODE).cast({_CODE: pl.Int64})
        ready = ready.join(keys, on=self.key, nulls_equal=True)  # other keys have no run and no first event
        if not ready.height:
            return runs, []
        if runs.height:
            runs = runs.join(keys, on=self.key, nulls_equal=True)
        ordered, codes = in_order(ready, ready[_CODE].to_numpy(), self.time)
        records = self._with_begins(ordered)  # this column must not decide the order of records of one time
        matches: list[pl.DataFrame] = []
        for positions in rounds(codes):
            self.seq += 1
            runs, completed = self._round(runs, records[np.sort(positions)])
            matches += completed
        return runs, matches

    def _with_begins(self, records: pl.DataFrame) -> pl.DataFrame:
        return records.with_columns(values(self.taken[0].where, records).fill_null(False).alias(_BEGINS))

    def _round(self, runs: pl.DataFrame, records: pl.DataFrame) -> tuple[pl.DataFrame, list[pl.DataFrame]]:
        """Applies one record of each of several keys."""
        matches: list[pl.DataFrame] = []
        if runs.height:
            met = runs.join(records.drop(self.key), on=_CODE)
            rest = runs.join(records, on=_CODE, how="anti")
            over = pl.col(self.time) > pl.col(_START) + self.within
            met, matches = self._expire(met.filter(over), met.filter(~over))
            if met.height:
                met = self._meet(met)
                done = met.filter(pl.col(_STAGE) == len(self.taken)) if not self.config.ends_in_absence else met.clear()
                if done.height and self.config.after == "past_last":
                    done = done.sort(_CODE, _SEQ).group_by(_CODE, maintain_order=True).first()
                    met = met.join(done, on=_CODE, how="anti")
                    records = records.join(done, on=_CODE, how="anti")
                matches.append(done)
                if not self.config.ends_in_absence:
                    met = met.filter(pl.col(_STAGE) < len(self.taken))
            runs = stacked(rest, met.select(runs.columns))
        begun = self._begin(records.filter(_BEGINS))
        if begun.height and len(self.config.events) == 1:
            return runs, [*matches, begun.with_columns(pl.col(_START).alias(self.time))]
        return stacked(runs, begun), matches

    def _meet(self, met: pl.DataFrame) -> pl.DataFrame:
        """The runs after each has met its record, without the runs that the record ends."""
        stage, last = pl.col(_STAGE), len(self.taken)
        hit, ended = pl.lit(False), pl.lit(False)
        for waits in range(1, last + 1):
            here = stage == waits
            absent = [values(event.where, met).fill_null(False) for event in self.config.absent(waits)]
            spoilt = reduce(lambda a, b: a | b, absent, pl.lit(False))
            ended = ended | (here & spoilt)
            if waits < last:
                event = self.taken[waits]
                holds = values(event.where, met).fill_null(False)
                hit = hit | (here & holds)
                ended = ended | (here & ~holds) if event.how == "next" else ended
        met = met.with_columns(hit.alias(_HIT)).filter(~ended)
        columns = {f"{event.name}_{c}": (i, c) for i, event in enumerate(self.taken) for c in self.names}
        taken = [
            pl.when(pl.col(_HIT) & (stage == i)).then(c).otherwise(name).alias(name) for name, (i, c) in columns.items()
        ]
        at = [pl.when(_HIT).then(self.seq).otherwise(_LAST).alias(_LAST)] if self.skips_absences else []
        return met.with_columns(*taken, *at, stage + pl.col(_HIT).cast(pl.Int64))

    def _begin(self, records: pl.DataFrame) -> pl.DataFrame:
        """The runs that begin with these records."""
        if not records.height:
            return pl.DataFrame()

        def column(event: Event, name: str) -> pl.Expr:
            value = pl.col(name) if event is self.taken[0] else pl.lit(None).cast(records.schema[name])
            return value.alias(f"{event.name}_{name}")

        captured = [column(event, name) for event in self.taken for name in self.names]
        start = pl.col(self.time)
        return records.select(
            *self.key,
            _CODE,
            start.alias(_START),
            pl.lit(self.seq, pl.Int64).alias(_SEQ),
            pl.lit(1, pl.Int64).alias(_STAGE),
            *([pl.lit(self.seq, pl.Int64).alias(_LAST)] if self.skips_absences else []),
            *captured,
        )

    def _expire(self, over: pl.DataFrame, left: pl.DataFrame) -> tuple[pl.DataFrame, list[pl.DataFrame]]:
        """The runs that are left when the time of others is up, and the matches of those that waited for an absence."""
        if not self.config.ends_in_absence:
            return left, []
        matches = []
        done = over.filter(pl.col(_STAGE) == len(self.taken)).with_columns(
            (pl.col(_START) + self.within).alias(self.time)
        )
        if not self.skips_absences:
            return left, [done]
        done = done.sort(_SEQ)
        while done.height:
            oldest = done.group_by(self.key, maintain_order=True).first().select(done.columns)
            matches.append(oldest)
            until = oldest.select(*self.key, pl.col(_LAST).alias(_UNTIL))
            done, left = (self._after(runs, until) for runs in (done, left))
        return left, matches

    def _after(self, runs: pl.DataFrame, until: pl.DataFrame) -> pl.DataFrame:
        """The runs that began after the last record of the match of their key."""
        bounded = runs.join(until, on=self.key, how="left", nulls_equal=True, maintain_order="left")
        return bounded.filter(pl.col(_UNTIL).is_null() | (pl.col(_SEQ) > pl.col(_UNTIL))).drop(_UNTIL)

    def rescale_own(self, states: Rescaling) -> None:
        """Divides the runs; their numbers keep their order within a key."""
        states.segments("runs")
        states.note("rounds", max)
