"""The meaning of a `Broadcast`."""

from __future__ import annotations

from engine.operators.broadcast import Broadcast
from engine.reference.ordered import OrderedReference, in_order
from engine.reference.two_sided import Pairs
from engine.spec.expressions import holds
from engine.spec.operator import Key, Progress, Row


class BroadcastReference(OrderedReference):
    """The meaning of a `Broadcast`.

    Of several rules with the same identity and time, the last one by its values counts.
    """

    def __init__(self, config: Broadcast) -> None:
        super().__init__(config)
        self.config, self.pairs = config, Pairs(config, config.on)
        self.rules: list[Row] = []

    def in_time(self, record: Row) -> bool:
        """A rule is."""
        return not self.pairs.is_left(record)

    def apply(self, ready: list[Row], progress: Progress) -> list[Row]:
        self.rules = in_order([*self.rules, *(r for r in ready if not self.pairs.is_left(r))], self.time)
        results = []
        for record in (r for r in ready if self.pairs.is_left(r)):
            rules = [r for r in self.in_effect(record[self.time]) if self.pairs.agreed(record, r)]
            matches = [pair for rule in rules if self.holds(pair := self.pairs.pair(record, rule))]
            if not matches and self.config.how == "left":
                matches = [self.pairs.pair(record, None)]
            results += [pair | {self.time: record[self.time]} for pair in matches]
        return results

    def in_effect(self, time: int) -> list[Row]:
        newest: dict[Key, Row] = {}
        for rule in self.rules:
            if rule[self.time] <= time:
                newest[tuple(rule[name] for name in self.config.identity)] = rule
        return list(newest.values())

    def holds(self, pair: Row) -> bool:
        return not self.config.where or holds(self.config.where, pair)
