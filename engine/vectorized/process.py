"""A user's keyed logic over columns."""

from __future__ import annotations

import polars as pl

from engine.operators.process import Process
from engine.spec.operator import Progress
from engine.state.rescaling import Rescaling
from engine.state.segments import ShardState
from engine.vectorized.ordered import OrderedProcessor
from engine.vectorized.sequences import Sequences


class ProcessProcessor(OrderedProcessor):
    """The logic of a `Process`."""

    def __init__(self, config: Process) -> None:
        super().__init__(config)
        self.sequences = Sequences(config.logic, config.key, config.time, config.idle_ms)

    def apply(self, ready: pl.DataFrame, state: ShardState, progress: Progress) -> pl.DataFrame:
        """The records that the logic forwarded, and what it emitted."""
        emitted = [frame for frame in self.sequences.run(ready, state, progress) if frame.height]
        return pl.concat(emitted, how="diagonal_relaxed") if emitted else pl.DataFrame()

    def rescale_own(self, states: Rescaling) -> None:
        """Divides the state of the user's logic."""
        self.sequences.rescale(states)
