"""The meaning of a `Broadcast`."""

from __future__ import annotations

import polars as pl

from engine.operators.broadcast import Broadcast
from engine.operators.two_sided import Sides
from engine.reference.ordered import OrderedReference, in_order
from engine.spec.operator import Key, Progress, Row
from engine.spec.steps import expression


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
