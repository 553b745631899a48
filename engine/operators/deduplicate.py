"""Deduplication: of records that agree in some columns, the first one within a time."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from engine.operators.ordered import Ordered, OrderedProcessor, OrderedReference
from engine.operators.turn import Logic, Turn
from engine.spec.duration import NEVER, duration_ms
from engine.spec.operator import Key, Processor, Progress, Reference, Row
from engine.state.segments import ShardState
from engine.vectorized.sequences import Sequences


@dataclass(frozen=True)
class Deduplicate(Ordered):
    """Lets a record pass if none that agrees with it has passed within the time before it.

    Args:
        by: The columns in which duplicates agree, besides the key.
        within: How long a record that passed holds back its duplicates; at exactly this distance one passes again.
    """

    by: tuple[str, ...] = ()
    within: str = "1h"

    @property
    def within_ms(self) -> int:
        """`within` in milliseconds."""
        return duration_ms(self.within, "within")

    def build(self) -> Processor:
        return DeduplicateProcessor(self)

    def reference(self) -> Reference:
        return DeduplicateReference(self)


class DeduplicateProcessor(OrderedProcessor):
    """The logic of a `Deduplicate`."""

    def __init__(self, config: Deduplicate) -> None:
        super().__init__(config)
        names = dict.fromkeys([*config.key, *config.by])
        self.sequences = Sequences(_Passes(config.within_ms), list(names), config.time, config.within_ms)

    def apply(self, ready: pl.DataFrame, state: ShardState, progress: Progress) -> pl.DataFrame:
        """The records that pass."""
        return self.sequences.run(ready, state, progress)[0]


@dataclass(frozen=True)
class _Passes(Logic):
    within: int

    state = {"passed": NEVER}  # noqa: RUF012

    def on_records(self, turn: Turn) -> None:
        passes = turn.time >= turn.state["passed"] + self.within
        turn.state["passed"][passes] = turn.time[passes]
        turn.forward(passes)


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
