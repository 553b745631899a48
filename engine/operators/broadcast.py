"""Broadcast: a slow stream, such as rules, that takes effect on the records of a keyed one from its event time on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import pyarrow as pa

from engine.operators.two_sided import TwoSided, pair_columns
from engine.spec.columns import require
from engine.spec.steps import Where, after, expression


@dataclass(frozen=True)
class Broadcast(TwoSided):
    """Each record of the left stream with each rule of the right one that is in effect at its time and concerns it.

    A rule is in effect from its time on until the next one of the same identity. A rule and a record of one time: it
    is in effect. The result has the time of the record.

    Args:
        identity: The columns of a rule that make a newer one replace it.
        on: Columns in which rule and record agree; the cheapest way to say what a rule concerns.
        where: SQL condition on the pair; a rule may so be withdrawn: ``"active"``.
        how: ``left``: a record that no rule concerns is a result too, with nulls.
    """

    broadcast: ClassVar[bool] = True

    identity: tuple[str, ...]
    on: tuple[str, ...] = ()
    where: str = ""
    how: Literal["inner", "left"] = "inner"

    def results(self, given: pa.Schema) -> pa.Schema | None:
        require(self.identity, pa.schema([given.field(name) for name in self.right]), "Broadcast(identity)")
        pair = pa.schema([given.field(self.time), *pair_columns(self, self.on, given)])
        if self.where:
            after([Where(self.where)], pair, "Broadcast(where)")
        return pair

    def __post_init__(self) -> None:
        if self.where:
            expression(self.where, "broadcast")
