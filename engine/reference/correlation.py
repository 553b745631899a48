"""The meaning of a `Correlation`."""

from __future__ import annotations

import math
from typing import ClassVar

from engine.operators.correlation import FLAT, Correlation
from engine.operators.window_join import END
from engine.reference.ordered import OrderedReference
from engine.reference.spans import last_slot, spans_of
from engine.reference.two_sided import Pairs
from engine.spec.operator import Key, Progress, Row


class CorrelationReference(OrderedReference):
    """The meaning of a `Correlation`."""

    instant: ClassVar[bool] = False

    def __init__(self, config: Correlation) -> None:
        super().__init__(config)
        self.pairs, self.config, self.window = Pairs(config, config.key), config, config.window
        self.records: list[Row] = []

    def due(self, record: Row) -> int:
        return last_slot(self.window, int(record[self.time]))[1]

    def apply(self, ready: list[Row], progress: Progress) -> list[Row]:
        self.records += ready
        slots: dict[Key, dict[int, tuple[list[float], list[float]]]] = {}
        for record in (r for r in self.records if None not in self.key_of(r)):  # a null in a key has no partner
            mine = slots.setdefault(self.key_of(record), {})
            values = mine.setdefault(last_slot(self.window, record[self.time])[0], ([], []))
            left = self.pairs.is_left(record)
            value = record[self.config.x if left else self.config.y]
            if value is not None:
                values[0 if left else 1].append(value)
        return [row for key, mine in slots.items() for row in self.windows(key, mine, progress)]

    def windows(self, key: Key, slots: dict[int, tuple[list[float], list[float]]], progress: Progress) -> list[Row]:
        means = {s: (_mean(xs), _mean(ys)) for s, (xs, ys) in slots.items() if xs and ys}
        every = sorted({end for s in means for _, end in spans_of(self.window, s)})
        rows = []
        for end in every:
            inside = [pair for s, pair in sorted(means.items()) if end - self.window.size_ms <= s < end]
            if progress.before < end <= progress.now and len(inside) >= self.config.least:
                row = dict(zip(self.key, key, strict=True)) | {"window_start": end - self.window.size_ms, END: end}
                rows.append(row | {"pairs": len(inside), "correlation": pearson(inside)})
        return rows


def _mean(values: list[float]) -> float:
    return math.fsum(values) / len(values)


def pearson(pairs: list[tuple[float, float]]) -> float | None:
    """Pearson's correlation; ``None`` if one side is constant.

    >>> round(pearson([(1, 2), (2, 4), (3, 6)]), 9)
    1.0
    """
    xs, ys = [x for x, _ in pairs], [y for _, y in pairs]
    dx, dy = [x - _mean(xs) for x in xs], [y - _mean(ys) for y in ys]
    sx, sy = math.sqrt(math.fsum(d * d for d in dx)), math.sqrt(math.fsum(d * d for d in dy))
    n = math.sqrt(len(pairs))
    if sx / n <= FLAT * max(map(abs, xs)) or sy / n <= FLAT * max(map(abs, ys)):
        return None
    return max(-1.0, min(1.0, math.fsum(a * b for a, b in zip(dx, dy, strict=True)) / (sx * sy)))
