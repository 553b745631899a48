"""A user's keyed logic over columns."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl

from engine.columns.partitioning import slots
from engine.operators.process import Process
from engine.spec.most_keys import CODE, MostKeys
from engine.spec.operator import Progress
from engine.state import known_keys
from engine.state.known_keys import KnownKeys
from engine.state.rescaling import Rescaling
from engine.state.segments import ShardState
from engine.vectorized.ordered import OrderedProcessor
from engine.vectorized.processor import Refused, Results
from engine.vectorized.sequences import Sequences


class ProcessProcessor(OrderedProcessor):
    """The logic of a `Process`."""

    def __init__(self, config: Process) -> None:
        super().__init__(config)
        self.sequences = Sequences(config.logic, config.key, config.time, config.idle_ms)
        self.most, self.slots = config.most, config.slots

    def process(self, batch: pl.DataFrame, state: ShardState, progress: Progress) -> Results:
        """Sets late records apart and applies those that are due, but for those of keys beyond the most."""
        self.refused: list[Refused] = []
        return replace(super().process(batch, state, progress), refused=self.refused)

    def apply(self, ready: pl.DataFrame, state: ShardState, progress: Progress) -> pl.DataFrame:
        """The records that the logic forwarded, and what it emitted."""
        if self.most and ready.height:
            ready = self._accepted(self.most, ready, state)
        emitted = [frame for frame in self.sequences.run(ready, state, progress) if frame.height]
        return pl.concat(emitted, how="diagonal_relaxed") if emitted else pl.DataFrame()

    def _accepted(self, most: MostKeys, ready: pl.DataFrame, state: ShardState) -> pl.DataFrame:
        """The records of keys that are known, or accepted in the order of event time, those of one instant by name."""
        ready = ready.sort(self.time, *(pl.col(name).cast(pl.String) for name in most.key))
        known, of = KnownKeys(state), slots(ready[self.key[0]].cast(pl.String), self.slots)
        beyond = np.zeros(ready.height, bool)
        for slot in np.unique(of).tolist():
            mine = np.flatnonzero(of == slot)
            records, times = ready[mine].select(most.key), ready[mine][self.time].to_numpy()
            beyond[mine] = known.beyond(most, "", slot, records.to_arrow(), np.ones(len(mine), bool), times)
            if refused := np.flatnonzero(beyond[mine]).tolist():
                reason = most.reason(tuple(str(part) for part in records.row(refused[0])))
                self.refused.append(Refused(ready[mine][refused], CODE, reason, slot))
        return ready.filter(pl.Series(~beyond))

    def rescale_own(self, states: Rescaling) -> None:
        """Divides the state of the user's logic, and the keys that are known."""
        for slot in range(self.slots if self.most else 0):
            known_keys.move(states.before, states.after, "", slot)
        self.sequences.rescale(states)
