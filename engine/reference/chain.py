"""The meaning of a chain of operators, and of steps on results."""

from __future__ import annotations

from dataclasses import replace

from engine.operators.chain import Chain, PassThrough, Transform
from engine.reference.meaning import Reference
from engine.reference.of import reference
from engine.reference.ordered import OrderedReference
from engine.spec.operator import SIDE, Progress, Row
from engine.spec.steps import row_by_row


class PassThroughReference(Reference):
    """Every record is a result as it is."""

    def __init__(self, operator: PassThrough) -> None:
        pass

    def take(self, records: list[Row], progress: Progress) -> tuple[list[Row], list[Row]]:
        return records, []


class TransformReference(Reference):
    """Steps on each result by itself."""

    def __init__(self, operator: Transform) -> None:
        self.steps = operator.steps

    def take(self, records: list[Row], progress: Progress) -> tuple[list[Row], list[Row]]:
        return row_by_row(self.steps, records), []


class ChainReference(Reference):
    """The results of each operator are the input of the next one, at the same watermark."""

    def __init__(self, operator: Chain) -> None:
        self.parts = [reference(part) for part in operator.parts]
        for part, ahead in zip(self.parts, operator.aheads(), strict=True):
            if isinstance(part, OrderedReference):
                part.ahead = ahead
        self.times = [getattr(part, "time", None) for part in operator.parts]

    def take(self, records: list[Row], progress: Progress) -> tuple[list[Row], list[Row]]:
        late: list[Row] = []
        aside: list[Row] = []
        for part, time in zip(self.parts, self.times, strict=True):
            late += [row for row in records if time in row and row[time] is None]
            records = [row for row in records if time not in row or row[time] is not None]
            aside += [row for row in records if row.get(SIDE) is not None]
            records = [row for row in records if row.get(SIDE) is None]
            records, missed = part.take(records, progress)
            late += missed
            progress = replace(progress, in_log=None)  # the results of an operator are in no log yet
        return records + aside, late
