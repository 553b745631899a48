"""Several operators one after the other, and steps on results, over columns."""

from __future__ import annotations

from dataclasses import replace

import polars as pl

from engine.operators.chain import Chain, PassThrough, Transform
from engine.spec.expressions import of_64_bits
from engine.spec.operator import SIDE, Progress
from engine.spec.steps import applied
from engine.state.rescaling import Rescaling
from engine.state.segments import ShardState
from engine.vectorized.beyond import set_apart
from engine.vectorized.build import build
from engine.vectorized.ordered import OrderedProcessor
from engine.vectorized.processor import Processor, Refused, Results, StateCounts


class PassThroughProcessor(Processor):
    """The logic of a `PassThrough`."""

    def __init__(self, operator: PassThrough) -> None:
        pass

    def process(self, batch: pl.DataFrame, state: ShardState, progress: Progress) -> Results:
        return Results(batch)

    def rescale(self, states: Rescaling) -> None:
        """There is no state."""


class TransformProcessor(Processor):
    """The logic of a `Transform`."""

    def __init__(self, operator: Transform) -> None:
        self.steps = operator.steps

    def process(self, batch: pl.DataFrame, state: ShardState, progress: Progress) -> Results:
        return Results(applied(self.steps, batch) if batch.height else batch)

    def rescale(self, states: Rescaling) -> None:
        """There is no state."""


class ChainedProcessors(Processor):
    """The logic of a `Chain`."""

    def __init__(self, operator: Chain) -> None:
        self.parts = [build(part) for part in operator.parts]
        self.times = [getattr(part, "time", None) for part in operator.parts]
        for part, ahead in zip(self.parts, operator.aheads(), strict=True):
            if isinstance(part, OrderedProcessor):
                part.ahead = ahead

    def process(self, batch: pl.DataFrame, state: ShardState, progress: Progress) -> Results:
        late, held, aside, beyond, refused = [], [], [], [], list[Refused]()
        for number, part in enumerate(self.parts):
            batch, untimed = self._timed(batch, number)
            late += [untimed] if untimed.height else []
            results = part.process(batch, state.scope(Chain.scope(number)), progress)
            progress = replace(progress, in_log=None)  # the results of an operator are not in the log
            batch, others = set_apart(results.records)
            beyond += [others] if others.height else []
            batch = of_64_bits(batch) if number < len(self.parts) - 1 else batch
            if SIDE in batch.columns and number < len(self.parts) - 1:
                aside += [batch.filter(pl.col(SIDE).is_not_null())]
                batch = batch.filter(pl.col(SIDE).is_null()).drop(SIDE)
            late += [results.late] if results.late is not None and results.late.height else []
            held.append(results.held)
            refused += results.refused
        if filled := [part for part in aside if part.height]:
            batch = pl.concat([*([batch] if batch.height else []), *filled], how="diagonal_relaxed")
        lost = pl.concat(late, how="diagonal_relaxed") if late else None
        return Results(batch, lost, StateCounts.combined(held), beyond=beyond, refused=refused)

    def _timed(self, batch: pl.DataFrame, number: int) -> tuple[pl.DataFrame, pl.DataFrame]:
        """The records with an event time, and those that a step between two operators has left without one."""
        time = self.times[number]
        if time not in batch.columns or not batch[time].null_count():
            return batch, batch.clear()
        return batch.filter(pl.col(time).is_not_null()), batch.filter(pl.col(time).is_null())

    def rescale(self, states: Rescaling) -> None:
        """Rescales each operator."""
        for number, part in enumerate(self.parts):
            part.rescale(states.scope(Chain.scope(number)))
