"""Several operators in one shard, one after the other; also no operator at all, and steps on results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import pyarrow as pa

from engine.operators.windows import BOUNDS, WindowAggregate
from engine.spec.grid import ANYWHERE, Grid
from engine.spec.operator import Operator
from engine.spec.state_form import StateForm
from engine.spec.steps import Columns, Step, after


@dataclass(frozen=True)
class PassThrough(Operator):
    """No operator: every record is a result as it is."""

    def state_form(self, columns: pa.Schema | None) -> StateForm | None:
        return None

    def results(self, columns: pa.Schema) -> pa.Schema | None:
        return columns

    def result_grid(self, grid: Grid) -> Grid:
        return grid


@dataclass(frozen=True)
class Transform(Operator):
    """Steps on the results of an operator."""

    steps: tuple[Step, ...]

    def state_form(self, columns: pa.Schema | None) -> StateForm | None:
        return None

    def results(self, columns: pa.Schema) -> pa.Schema | None:
        return after(self.steps, columns)

    def result_ahead(self, ahead: int) -> int:
        """A time that an expression sets is taken as it is."""
        return ahead if self._keeps_time else 0

    def result_grid(self, grid: Grid) -> Grid:
        return grid if self._keeps_time else ANYWHERE

    @property
    def _keeps_time(self) -> bool:
        end = BOUNDS[1]
        settings = [dict(step.columns) for step in self.steps if isinstance(step, Columns)]
        return all(expressions.get(end, end) in (end, f'"{end}"') for expressions in settings)


@dataclass(frozen=True)
class Chain(Operator):
    """Operators one after the other in one shard: the results of each are the input of the next, at the same watermark.

    A record that comes too late for one of the operators goes to the late topic, with the columns it has at that point.
    """

    parts: tuple[Operator, ...]

    def state_forms(self, columns: pa.Schema | None) -> dict[str, StateForm]:
        """The form of each operator's state by the scope in which it lies (`scope`)."""
        forms = {}
        for number, part in enumerate(self.parts):
            if form := part.state_form(columns):
                forms[self.scope(number)] = form
            columns = None if columns is None else part.results(columns)
        return forms

    @staticmethod
    def scope(number: int) -> str:
        """Name of the part of the state that belongs to one of the operators."""
        return str(number)

    def result_time(self, time: str) -> str:
        for part in self.parts:
            time = part.result_time(time)
        return time

    def aheads(self) -> list[int]:
        """For each operator how far its records lie before their time, see `Operator.result_ahead`; milliseconds."""
        aheads = [0]
        for part in self.parts:
            aheads.append(part.result_ahead(aheads[-1]))
        return aheads[:-1]

    def result_ahead(self, ahead: int) -> int:
        for part in self.parts:
            ahead = part.result_ahead(ahead)
        return ahead

    def result_grid(self, grid: Grid) -> Grid:
        for part in self.parts:
            grid = part.result_grid(grid)
        return grid

    def results(self, columns: pa.Schema) -> pa.Schema | None:
        after_part: pa.Schema | None = columns
        for part in self.parts:
            after_part = None if after_part is None else part.results(after_part)
        return after_part

    def late_forms(self, inputs: Sequence[pa.Schema]) -> Sequence[pa.Schema]:
        forms = list(self.parts[0].late_forms(inputs))
        for before, part in pairwise(self.parts):  # only revisions of windows are behind the watermark
            revised = before.revised if isinstance(before, WindowAggregate) else None
            forms += part.late_forms([revised]) if revised else []
        return forms
