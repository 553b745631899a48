"""The meaning of an `IntervalJoin`."""

from __future__ import annotations

from engine.operators.interval_join import IntervalJoin
from engine.reference.ordered import OrderedReference
from engine.reference.two_sided import Pairs
from engine.spec.operator import Progress, Row


class IntervalJoinReference(OrderedReference):
    """The meaning of an `IntervalJoin`: each record is compared with all records of the other stream so far."""

    def __init__(self, config: IntervalJoin) -> None:
        super().__init__(config)
        self.pairs, self.outer = Pairs(config, config.key), config.how == "left"
        self.lower, self.upper = int(config.lower), int(config.upper)
        self.left: list[Row] = []
        self.right: list[Row] = []
        self.paired: list[int] = []

    def apply(self, ready: list[Row], progress: Progress) -> list[Row]:
        results = []
        for record in ready:
            mine, others = (self.left, self.right) if self.pairs.is_left(record) else (self.right, self.left)
            mine.append(record)
            for other in others:
                left, right = (record, other) if mine is self.left else (other, record)
                apart = right[self.time] - left[self.time]
                if self.pairs.agreed(left, right) and self.lower <= apart <= self.upper:
                    self.paired.append(id(left))
                    later = max(left[self.time], right[self.time])
                    results.append(self.pairs.pair(left, right) | {self.time: later})
        for left in self.left if self.outer else []:
            end = left[self.time] + max(self.upper, 0)
            if end < progress.now and id(left) not in self.paired:
                self.paired.append(id(left))
                results.append(self.pairs.pair(left, None) | {self.time: end})
        return results
