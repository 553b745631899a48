"""The meaning of aggregates over count windows and delta windows."""

from __future__ import annotations

from engine.operators.sequence_aggregate import SequenceAggregate
from engine.reference.beyond import computed, without_beyond
from engine.reference.ordered import OrderedReference
from engine.reference.sequence_windows import breaks, fills
from engine.spec.duration import END_OF_TIME
from engine.spec.operator import Key, Progress, Row


class SequenceAggregateReference(OrderedReference):
    """The meaning of a `SequenceAggregate`.

    * A window closes at its timeout if no record comes before that. Otherwise it closes at a record that breaks it,
      which opens the next window, or with the record that fills it.
    * At the end of all input a window without a timeout closes a millisecond after its last record.
    """

    def __init__(self, config: SequenceAggregate) -> None:
        super().__init__(config)
        self.windows, self.aggregates = config.windows, config.aggregates
        self.open: dict[Key, list[Row]] = {}

    def apply(self, ready: list[Row], progress: Progress) -> list[Row]:
        results: list[Row] = []
        for record in ready:
            key, now = self.key_of(record), record[self.time]
            if key in self.open and self.timeout(key) <= now:
                results.append(self.close(key, self.timeout(key)))
            elif key in self.open and breaks(self.windows, self.open[key], record):
                results.append(self.close(key, now))
            self.open.setdefault(key, []).append(record)
            if fills(self.windows, self.open[key]):
                results.append(self.close(key, now + 1))
        for key in list(self.open):
            if self.timeout(key) <= progress.now:
                results.append(self.close(key, self.timeout(key)))
            elif progress.now == END_OF_TIME:
                results.append(self.close(key, self.open[key][-1][self.time] + 1))
        return without_beyond(results)

    def timeout(self, key: Key) -> int:
        timeout = self.windows.timeout_ms
        return self.open[key][0][self.time] + timeout if timeout else END_OF_TIME + 1

    def close(self, key: Key, end: int) -> Row:
        records = self.open.pop(key)
        row: Row = dict(zip(self.key, key, strict=True))
        row |= {"window_start": records[0][self.time] - self.ahead, "window_end": end - self.ahead, "revision": 0}
        for name, aggregate in self.aggregates.items():
            row |= computed(name, aggregate, records)
        return row
