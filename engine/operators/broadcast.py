"""Broadcast join: the records of a slow stream, such as rules, apply to the records of a keyed stream."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa

from engine.operators.two_sided import How, TwoSided, pair_columns
from engine.spec.choice import check_choice
from engine.spec.columns import require
from engine.spec.expressions import expression
from engine.spec.steps import Where, after


@dataclass(frozen=True)
class Broadcast(TwoSided):
    """Pairs each record of the left stream with each rule of the right stream that is in effect at the record's time.

    A rule is in effect from its own time (inclusive) until the time of the next rule of the same identity. The result
    has the time of the record. A rule is never late: if records of its time have been paired before it came, it applies
    to the later ones.

    Args:
        identity: The columns that identify a rule: a newer rule with the same values replaces it.
        on: Columns in which rule and record must agree; the cheapest condition.
        where: SQL condition on the pair. It can also withdraw a rule: ``"active"``.
        how: ``left``: a record without any rule is a result too, with nulls.
    """

    broadcast: ClassVar[bool] = True

    identity: tuple[str, ...]
    on: tuple[str, ...] = ()
    where: str = ""
    how: How = "inner"

    def late_forms(self, inputs: Sequence[pa.Schema]) -> Sequence[pa.Schema]:
        return super().late_forms(inputs[: self.split])

    def results(self, columns: pa.Schema) -> pa.Schema | None:
        require(self.identity, pa.schema([columns.field(name) for name in self.right]), "Broadcast(identity)")
        pair = pa.schema([columns.field(self.time), *pair_columns(self, self.on, columns)])
        if self.where:
            after([Where(self.where)], pair, "Broadcast(where)")
        return pair

    def __post_init__(self) -> None:
        check_choice(self.how, How, "Broadcast(how)")
        if self.where:
            expression(self.where, "broadcast")
