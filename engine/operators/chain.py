"""Operators one after the other in one shard, and the plainest ones: none at all, and steps on results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import polars as pl
import pyarrow as pa

from engine.operators.windows import WindowAggregate
from engine.spec.operator import Held, Processor, ProcessorConfig, Progress, Reference, Results, Row
from engine.spec.steps import Step, applied, row_by_row
from engine.state.segments import ShardState


@dataclass(frozen=True)
class PassThrough(ProcessorConfig):
    """Every record goes on as it came."""

    def build(self) -> Processor:
        return _PassThrough()

    def reference(self) -> Reference:
        return _PassedOn()


class _PassThrough(Processor):
    def process(self, batch: pl.DataFrame, state: ShardState, progress: Progress) -> Results:
        return Results(batch)


class _PassedOn(Reference):
    def take(self, records: list[Row], progress: Progress) -> tuple[list[Row], list[Row]]:
        return records, []


@dataclass(frozen=True)
class Transform(ProcessorConfig):
    """Steps on the results of an operator."""

    steps: tuple[Step, ...]

    def build(self) -> Processor:
        return _Transformer(self.steps)

    def reference(self) -> Reference:
        return _RowTransformer(self.steps)


@dataclass(frozen=True)
class _Transformer(Processor):
    steps: tuple[Step, ...]

    def process(self, batch: pl.DataFrame, state: ShardState, progress: Progress) -> Results:
        return Results(applied(self.steps, batch) if batch.height else batch)


@dataclass(frozen=True)
class _RowTransformer(Reference):
    steps: tuple[Step, ...]

    def take(self, records: list[Row], progress: Progress) -> tuple[list[Row], list[Row]]:
        return row_by_row(self.steps, records), []


@dataclass(frozen=True)
class Chain(ProcessorConfig):
    """Operators one after the other in one shard: the results of each are the input of the next, at the same watermark.

    What comes too late for any of them goes to the late topic, in the form that it then has.
    """

    parts: tuple[ProcessorConfig, ...]

    def build(self) -> Processor:
        return _Chained(tuple(part.build() for part in self.parts))

    def reference(self) -> Reference:
        return _ChainedReference(tuple(part.reference() for part in self.parts))

    def result_time(self, time: str) -> str:
        for part in self.parts:
            time = part.result_time(time)
        return time

    def late_forms(self, given: Sequence[pa.Schema]) -> Sequence[pa.Schema]:
        forms = list(self.parts[0].late_forms(given))
        for before, part in pairwise(self.parts):  # only revisions of windows are behind the watermark
            revised = before.revised if isinstance(before, WindowAggregate) else None
            forms += part.late_forms([revised]) if revised else []
        return forms

    def describe(self) -> list[tuple[str, str]]:
        numbered = ((number, part.describe()) for number, part in enumerate(self.parts, 1))
        return [(f"{number}. {term}", meaning) for number, lines in numbered for term, meaning in lines]


@dataclass(frozen=True)
class _Chained(Processor):
    parts: tuple[Processor, ...]

    def process(self, batch: pl.DataFrame, state: ShardState, progress: Progress) -> Results:
        late, held = [], []
        for number, part in enumerate(self.parts):
            results = part.process(batch, state.scope(str(number)), progress)
            batch = results.records
            late += [results.late] if results.late is not None and results.late.height else []
            held.append(results.held)
        return Results(batch, pl.concat(late, how="diagonal_relaxed") if late else None, Held.together(held))


@dataclass(frozen=True)
class _ChainedReference(Reference):
    parts: tuple[Reference, ...]

    def take(self, records: list[Row], progress: Progress) -> tuple[list[Row], list[Row]]:
        late: list[Row] = []
        for part in self.parts:
            records, missed = part.take(records, progress)
            late += missed
        return records, late
