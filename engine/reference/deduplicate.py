"""The meaning of a `Deduplicate`."""

from __future__ import annotations

from engine.operators.deduplicate import Deduplicate
from engine.reference.ordered import OrderedReference
from engine.spec.operator import Key, Progress, Row


class DeduplicateReference(OrderedReference):
    """The meaning of a `Deduplicate`."""

    def __init__(self, config: Deduplicate) -> None:
        super().__init__(config)
        self.names, self.within = dict.fromkeys([*config.key, *config.by]), config.within_ms
        self.passed: dict[Key, int] = {}

    def apply(self, ready: list[Row], progress: Progress) -> list[Row]:
        results = []
        for record in ready:
            same = tuple(record[name] for name in self.names)
            if same not in self.passed or record[self.time] >= self.passed[same] + self.within:
                self.passed[same] = record[self.time]
                results.append(record)
        return results
