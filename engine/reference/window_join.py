"""The meaning of a `WindowJoin`."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from engine.operators.window_join import END, WindowJoin
from engine.reference.ordered import OrderedReference
from engine.reference.spans import spans_of
from engine.reference.two_sided import Pairs
from engine.spec.operator import Progress, Row


class WindowJoinReference(OrderedReference):
    """The meaning of a `WindowJoin`."""

    instant: ClassVar[bool] = False

    def __init__(self, config: WindowJoin) -> None:
        super().__init__(config)
        self.pairs, self.window = Pairs(config, config.key), config.window
        self.left: list[Row] = []
        self.right: list[Row] = []

    def take(self, records: list[Row], progress: Progress) -> tuple[list[Row], list[Row]]:
        """Leaves out the records that lie between windows."""
        passed = progress.passed(len(records)).tolist()
        inside = [(record, at) for record, at in zip(records, passed, strict=True) if self.ends_of(record)]
        return super().take([record for record, _ in inside], replace(progress, in_log=[at for _, at in inside]))

    def due(self, record: Row) -> int:
        return self.ends_of(record)[0]

    def ends_of(self, record: Row) -> list[int]:
        return [end for _, end in spans_of(self.window, record[self.time])]

    def apply(self, ready: list[Row], progress: Progress) -> list[Row]:
        for record in ready:
            (self.left if self.pairs.is_left(record) else self.right).append(record)
        return [
            self.pairs.pair(left, right) | {"window_start": end - self.window.size_ms, END: end}
            for left in self.left
            for right in self.right
            if self.pairs.agreed(left, right)
            for end in self.ends_of(left)
            if end in self.ends_of(right) and progress.before < end <= progress.now
        ]
