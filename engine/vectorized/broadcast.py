"""Broadcast over columns."""

from __future__ import annotations

import polars as pl

from engine.columns.tables import stacked
from engine.operators.broadcast import Broadcast
from engine.operators.two_sided import LEFT_TIME, RIGHT_TIME, Sides
from engine.spec.duration import END_OF_TIME
from engine.spec.expressions import values
from engine.spec.inputs import INPUT
from engine.spec.operator import Progress
from engine.state.part_log import PartLog
from engine.state.rescaling import Rescaling
from engine.state.segments import ShardState, pack, unpack
from engine.vectorized.ordered import OrderedProcessor

_UNTIL, _LEFT = "__until", "__left"


class BroadcastProcessor(OrderedProcessor):
    """The logic of a `Broadcast`.

    State: segment ``rules`` holds the rules that are in effect and those that will be.
    """

    def __init__(self, config: Broadcast) -> None:
        super().__init__(config)
        self.config, self.sides = config, Sides(config, config.on)
        self.in_time_from = config.split
        self.identity = [self.sides.right_names[name] for name in config.identity]

    def apply(self, ready: pl.DataFrame, state: ShardState, progress: Progress) -> pl.DataFrame:
        """Pairs of records and rules."""
        if not ready.height:
            return pl.DataFrame()
        records, news = self.sides.cut(ready)
        stored = state.get("rules")
        rules = unpack(stored)["rules"] if stored else pl.DataFrame()
        if news.height:
            rules = self._versions(stacked(rules.drop(_UNTIL, strict=False), news))
            kept = rules.filter(pl.col(_UNTIL) > progress.now)
            state.put("rules", pack({"rules": kept}))
        return self._pairs(records, rules) if records.height else pl.DataFrame()

    def _versions(self, rules: pl.DataFrame) -> pl.DataFrame:
        """Adds to each rule the instant until which it is in effect."""
        others = sorted(name for name in rules.columns if name not in (*self.identity, RIGHT_TIME))
        ordered = rules.sort(*self.identity, RIGHT_TIME, *others)
        until = pl.col(RIGHT_TIME).shift(-1).over(self.identity).fill_null(END_OF_TIME)
        return ordered.with_columns(until.alias(_UNTIL))

    def _pairs(self, records: pl.DataFrame, rules: pl.DataFrame) -> pl.DataFrame:
        records = records.with_row_index(_LEFT)
        pairs = pl.DataFrame()
        if rules.height:
            on = self.config.on
            pairs = records.join(rules, on=on) if on else records.join(rules, how="cross")
            time = pl.col(LEFT_TIME)
            pairs = pairs.filter((pl.col(RIGHT_TIME) <= time) & (time < pl.col(_UNTIL))).drop(_UNTIL)
            if self.config.where:
                pairs = pairs.filter(values(self.config.where, pairs))
        if self.config.how == "left":
            alone = records.join(pairs.select(_LEFT), on=_LEFT, how="anti") if pairs.height else records
            pairs = stacked(pairs, alone)
        if not pairs.height:
            return pl.DataFrame()
        names = {**dict.fromkeys(self.sides.left_names.values()), **dict.fromkeys(self.sides.right_names.values())}
        missing = [pl.lit(None).alias(name) for name in names if name not in pairs.columns]
        return pairs.with_columns(missing).select(pl.col(LEFT_TIME).alias(self.time), *names)

    def rescale(self, states: Rescaling) -> None:
        """Divides the records that wait, of which all shards have the same rules."""
        for shard, state, sources in states.shards():
            waiting = PartLog(state, "held")
            for first, source in enumerate(sources):
                log = PartLog(source, "held")
                for part in log.parts:
                    records = log.read(part)["records"]
                    is_rule = records[INPUT] >= self.sides.split
                    kept = records.filter((states.mine(records, shard) & ~is_rule) | (is_rule & (first == 0)))
                    if kept.height:
                        waiting.append({"records": kept}, part.mark, kept.height)
        self.rescale_own(states)

    def rescale_own(self, states: Rescaling) -> None:
        """All shards have the same rules."""
        states.copies("rules")
