"""Broadcast: a slow stream, such as rules, that takes effect on the records of a keyed one from its event time on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import polars as pl

from engine.operators.ordered import OrderedProcessor, OrderedReference, in_order
from engine.operators.two_sided import LEFT_TIME, RIGHT_TIME, Sides, TwoSided, together
from engine.spec.duration import END_OF_TIME
from engine.spec.operator import Key, Processor, Progress, Reference, Row
from engine.spec.steps import expression
from engine.state.segments import ShardState, pack, unpack

_UNTIL, _LEFT = "__until", "__left"


@dataclass(frozen=True)
class Broadcast(TwoSided):
    """Each record of the left stream with each rule of the right one that is in effect at its time and concerns it.

    A rule is in effect from its time on until the next one of the same identity. A rule and a record of one time: it
    is in effect. The result has the time of the record.

    Args:
        identity: The columns of a rule that make a newer one replace it.
        on: Columns in which rule and record agree; the cheapest way to say what a rule concerns.
        where: SQL condition on the pair; a rule may so be withdrawn: ``"active"``.
        how: ``left``: a record that no rule concerns is a result too, with nulls.
    """

    wide: ClassVar[bool] = True

    identity: tuple[str, ...]
    on: tuple[str, ...] = ()
    where: str = ""
    how: Literal["inner", "left"] = "inner"

    def __post_init__(self) -> None:
        if self.where:
            expression(self.where, "broadcast")

    def build(self) -> Processor:
        return BroadcastProcessor(self)

    def reference(self) -> Reference:
        return BroadcastReference(self)


class BroadcastProcessor(OrderedProcessor):
    """The logic of a `Broadcast`.

    State: segment ``rules``, those in effect and those to come.
    """

    def __init__(self, config: Broadcast) -> None:
        super().__init__(config)
        self.config, self.sides = config, Sides(config, config.on)
        self.identity = [self.sides.right_names[name] for name in config.identity]

    def apply(self, ready: pl.DataFrame, state: ShardState, progress: Progress) -> pl.DataFrame:
        """Pairs of records and rules."""
        if not ready.height:
            return pl.DataFrame()
        records, news = self.sides.cut(ready)
        stored = state.get("rules")
        rules = unpack(stored)["rules"] if stored else pl.DataFrame()
        if news.height:
            rules = self._versions(together(rules.drop(_UNTIL, strict=False), news))
            kept = rules.filter(pl.col(_UNTIL) > progress.now)
            state.put("rules", pack({"rules": kept}))
        return self._pairs(records, rules) if records.height else pl.DataFrame()

    def _versions(self, rules: pl.DataFrame) -> pl.DataFrame:
        """Rules with the instant until which each is in effect."""
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
                pairs = pairs.filter(expression(self.config.where))
        if self.config.how == "left":
            alone = records.join(pairs.select(_LEFT), on=_LEFT, how="anti") if pairs.height else records
            pairs = together(pairs, alone)
        if not pairs.height:
            return pl.DataFrame()
        names = {**dict.fromkeys(self.sides.left_names.values()), **dict.fromkeys(self.sides.right_names.values())}
        missing = [pl.lit(None).alias(name) for name in names if name not in pairs.columns]
        return pairs.with_columns(missing).select(pl.col(LEFT_TIME).alias(self.time), *names)


class BroadcastReference(OrderedReference):
    """The meaning of a `Broadcast`; rules of one identity and time: the last one by its values counts."""

    def __init__(self, config: Broadcast) -> None:
        super().__init__(config)
        self.config, self.sides = config, Sides(config, config.on)
        self.rules: list[Row] = []

    def apply(self, ready: list[Row], progress: Progress) -> list[Row]:
        self.rules = in_order([*self.rules, *(r for r in ready if not self.sides.is_left(r))], self.time)
        results = []
        for record in (r for r in ready if self.sides.is_left(r)):
            rules = [r for r in self.in_effect(record[self.time]) if all(r[c] == record[c] for c in self.config.on)]
            found = [pair for rule in rules if self.holds(pair := self.sides.pair(record, rule))]
            if not found and self.config.how == "left":
                found = [self.sides.pair(record, None)]
            results += [pair | {self.time: record[self.time]} for pair in found]
        return results

    def in_effect(self, time: int) -> list[Row]:
        newest: dict[Key, Row] = {}
        for rule in self.rules:
            if rule[self.time] <= time:
                newest[tuple(rule[name] for name in self.config.identity)] = rule
        return list(newest.values())

    def holds(self, pair: Row) -> bool:
        where = self.config.where
        return not where or bool(pl.DataFrame([pair]).select(expression(where)).item())
