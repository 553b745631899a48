"""Broadcast: a slow stream, such as rules, that takes effect on the records of a keyed one from its event time on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from engine.operators.two_sided import TwoSided
from engine.spec.steps import expression


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

    def __post_init__(self) -> None:
        if self.where:
            expression(self.where, "broadcast")
