"""Temporal join over columns."""

from __future__ import annotations

from dataclasses import replace

import polars as pl

from engine.columns.tables import stacked
from engine.operators.temporal_join import TemporalJoin
from engine.operators.two_sided import LEFT_TIME, RIGHT_TIME, Sides
from engine.spec.duration import END_OF_TIME, NEVER
from engine.spec.expressions import values
from engine.spec.inputs import INPUT
from engine.spec.operator import Progress
from engine.state.part_log import PartLog
from engine.state.rescaling import Rescaling
from engine.state.segments import ShardState
from engine.vectorized.ordered import MOST_PARTS, OrderedProcessor
from engine.vectorized.processor import Results

_SAID, _SINCE, _DELETES, _UNTIL = "__said", "__since", "__deletes", "__until"


class TemporalJoinProcessor(OrderedProcessor):
    """The logic of a `TemporalJoin`.

    State: the log ``versions`` holds those versions that a record may still need. A few new ones are a part of their
    own; else all are written anew, without those that no record can need any more. The mark of a part is the instant at
    which none of its versions that had a successor is needed. So no more than twice what is needed is kept.
    """

    def __init__(self, config: TemporalJoin) -> None:
        super().__init__(config)
        self.config, self.sides, self.lateness = config, Sides(config, config.key), int(config.allowed_lateness)
        others = (self.sides.right_names[name] for name in sorted(config.right) if name not in (*self.key, self.time))
        self.order = [_SINCE, RIGHT_TIME, *others]

    def process(self, batch: pl.DataFrame, state: ShardState, progress: Progress) -> Results:
        """Sets the time of each version to the instant from which it is valid, and goes on as with all records."""
        passed = pl.Series(progress.passed(batch.height), dtype=pl.Int64)
        time, is_left = pl.col(self.time), pl.col(INPUT) < self.sides.split
        since = pl.when(is_left).then(time).otherwise(pl.max_horizontal(time, passed))
        results = super().process(batch.with_columns(time.alias(_SAID), since.alias(self.time)), state, progress)
        return results if results.late is None else replace(results, late=results.late.drop(_SAID))

    def apply(self, ready: pl.DataFrame, state: ShardState, progress: Progress) -> pl.DataFrame:
        """The records with the versions of their times."""
        log, needed_from = PartLog(state, "versions"), max(progress.before, self.lateness + NEVER) - self.lateness
        is_left = pl.col(INPUT) < self.sides.split
        news = self._versions(ready.filter(~is_left)) if ready.height else ready
        records = ready.filter(is_left) if ready.height else ready
        if news.height or any(part.mark <= needed_from for part in log.parts):
            self._take_in(log, news, needed_from)
        if not records.height:
            return pl.DataFrame()
        return self._enriched(records.select(pl.col(c).alias(name) for c, name in self.sides.left_names.items()), log)

    def _versions(self, records: pl.DataFrame) -> pl.DataFrame:
        """Records of the right stream as rows of the log. A missing key agrees with none, so these are left out."""
        said = records.with_columns(pl.col(self.time).alias(_SINCE), pl.col(_SAID).alias(self.time))
        deletes = values(self.config.deletion, said.select(self.config.right)).fill_null(False).cast(pl.Boolean)
        columns = (pl.col(c).alias(name) for c, name in self.sides.right_names.items())
        rows = said.with_columns(deletes.alias(_DELETES)).select(*columns, _SINCE, _DELETES)
        return rows.drop_nulls(self.key)

    def _take_in(self, log: PartLog, news: pl.DataFrame, needed_from: int) -> None:
        parts = log.parts
        few = news.height * MOST_PARTS < sum(part.rows for part in parts) and len(parts) < MOST_PARTS
        if news.height and few and all(part.mark > needed_from for part in parts):
            log.append({"versions": news}, END_OF_TIME, news.height)
            return
        until = pl.col(_SINCE).shift(-1).over(self.key).fill_null(END_OF_TIME)
        versions = self._one_an_instant(stacked(*(log.read(part)["versions"] for part in parts), news))
        versions = versions.with_columns(until.alias(_UNTIL))
        forgotten = pl.col(_DELETES) & (pl.col(_SINCE) <= needed_from)
        versions = versions.filter((pl.col(_UNTIL) > needed_from) & ~forgotten)
        if not versions.height:
            log.forget(parts)
            return
        ends = pl.when(pl.col(_DELETES)).then(_SINCE).otherwise(pl.col(_UNTIL))
        last = versions.select(ends.filter(ends < END_OF_TIME).max()).item()
        mark = END_OF_TIME if last is None else int(last)
        log.replace(parts, {"versions": versions.drop(_UNTIL)}, mark, versions.height)

    def _one_an_instant(self, versions: pl.DataFrame) -> pl.DataFrame:
        """The versions in order; of several of a key that are valid from one instant on, the last by their values."""
        return versions.sort(self.order).unique([*self.key, _SINCE], keep="last", maintain_order=True)

    def _enriched(self, records: pl.DataFrame, log: PartLog) -> pl.DataFrame:
        keys = records.select(self.key).unique()
        asked = (log.read(part)["versions"].join(keys, on=self.key, how="semi") for part in log.parts)
        versions = stacked(*asked)
        names = [name for name in self.sides.right_names.values() if name not in self.key]
        if not versions.height:
            pairs = records.with_columns(pl.lit(None).alias(name) for name in names)
        else:
            pairs = records.sort(LEFT_TIME).join_asof(
                self._one_an_instant(versions),
                left_on=LEFT_TIME,
                right_on=_SINCE,
                by=self.key,
                check_sortedness=False,
            )
            valid = ~pl.col(_DELETES)
            pairs = pairs.with_columns(pl.when(valid).then(pl.col(name)).alias(name) for name in names)
        if self.config.how == "inner":
            pairs = pairs.filter(pl.col(RIGHT_TIME).is_not_null())
        return pairs.select(pl.col(LEFT_TIME).alias(self.time), *self.sides.left_names.values(), *names)

    def rescale_own(self, states: Rescaling) -> None:
        """Divides the versions by key."""
        states.log("versions", lambda tables: tables["versions"].height)
