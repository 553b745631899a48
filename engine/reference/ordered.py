"""The base of the references of operators in event-time order: records wait in a list until they are due."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any, ClassVar

from engine.operators.ordered import EventTimeOrdered
from engine.reference.meaning import Reference
from engine.spec.inputs import INPUT
from engine.spec.operator import Key, Progress, Row


class OrderedReference(Reference, ABC):
    """Records wait in a list until they are due; then they are sorted and applied one by one."""

    def __init__(self, config: EventTimeOrdered) -> None:
        self.key, self.time, self.loops = list(config.key), config.time, list(config.loops)
        self.waiting: list[Row] = []

    instant: ClassVar[bool] = True
    ahead: int = 0

    def due(self, record: Row) -> int:
        """The watermark at which a record is applied. If the watermark is there already, the record is late."""
        return int(record[self.time]) + 1 - self.ahead

    def in_time(self, record: Row) -> bool:
        """Whether a record is never late: it takes effect on what has not been applied yet."""
        return False

    @abstractmethod
    def apply(self, ready: list[Row], progress: Progress) -> list[Row]:
        """Applies records in event-time order; returns the results."""

    def take(self, records: list[Row], progress: Progress) -> tuple[list[Row], list[Row]]:
        """Sets late records apart and applies those that are due."""
        late, ready = [], []
        for record, passed in zip(records, progress.passed(len(records)).tolist(), strict=True):
            if record.get(INPUT) in self.loops and record[self.time] < progress.before:
                ready.append(record | {self.time: progress.before})
            elif self.due(record) <= passed and not self.in_time(record):
                late.append(record)
            else:
                self.waiting.append(record)
        if not self.instant:
            self.waiting, ready = self.waiting + ready, []
        ready += [r for r in self.waiting if self.due(r) <= progress.now]
        self.waiting = [r for r in self.waiting if self.due(r) > progress.now]
        return self.apply(in_order(ready, self.time), progress), late

    def key_of(self, record: Row) -> Key:
        """The key of a record."""
        return tuple(record[k] for k in self.key)


def in_order(records: Iterable[Row], time: str) -> list[Row]:
    """Records sorted by event time; ties by their values, column by column by name, missing values first."""
    records = list(records)
    names = sorted({name for record in records for name in record if name != time})

    def place(record: Row) -> list[Any]:
        values = (record.get(name) for name in names)
        return [record[time], *((value is not None, value if value is not None else 0) for value in values)]

    return sorted(records, key=place)
