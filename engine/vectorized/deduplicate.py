"""Deduplication over columns."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from engine.operators.deduplicate import Deduplicate
from engine.operators.turn import Logic, Turn
from engine.spec.duration import NEVER
from engine.spec.operator import Progress
from engine.state.rescaling import Rescaling
from engine.state.segments import ShardState
from engine.vectorized.ordered import OrderedProcessor
from engine.vectorized.sequences import Sequences


class DeduplicateProcessor(OrderedProcessor):
    """The logic of a `Deduplicate`."""

    def __init__(self, config: Deduplicate) -> None:
        super().__init__(config)
        names = dict.fromkeys([*config.key, *config.by])
        self.sequences = Sequences(_Passes(config.within_ms), list(names), config.time, config.within_ms)

    def apply(self, ready: pl.DataFrame, state: ShardState, progress: Progress) -> pl.DataFrame:
        """The records that pass."""
        return self.sequences.run(ready, state, progress)[0]

    def rescale_own(self, states: Rescaling) -> None:
        """Divides what has passed by key."""
        self.sequences.rescale(states)


@dataclass(frozen=True)
class _Passes(Logic):
    within: int

    state = {"passed": NEVER}  # noqa: RUF012

    def on_records(self, turn: Turn) -> None:
        passes = turn.time >= turn.state["passed"] + self.within
        turn.state["passed"][passes] = turn.time[passes]
        turn.forward(passes)
