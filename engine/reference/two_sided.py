"""Shared by the references of joins: to which side a record belongs, and the columns of a pair."""

from __future__ import annotations

from collections.abc import Sequence

from engine.operators.two_sided import LEFT_TIME, RIGHT_TIME, TwoSided
from engine.spec.inputs import INPUT
from engine.spec.operator import Row


class Pairs:
    """Makes pairs of records of two streams.

    A pair has the columns in which both agree, ``left_time`` and ``right_time``, all other columns of the left record,
    and those of the right one; a right column whose name the left one has too is called ``<name>_right``.

    Args:
        config: The operator, which names the columns of both sides.
        agree: The columns in which the two of a pair agree.
    """

    def __init__(self, config: TwoSided, agree: Sequence[str]) -> None:
        self.config, self.agree = config, agree

    def is_left(self, record: Row) -> bool:
        """Whether a record belongs to the left stream."""
        return bool(record[INPUT] < self.config.split)

    def agreed(self, left: Row, right: Row) -> bool:
        """Whether two records agree in the columns in which a pair must; null agrees with nothing, as in SQL."""
        return all(left[name] == right[name] and left[name] is not None for name in self.agree)

    def pair(self, left: Row | None, right: Row | None) -> Row:
        """The columns of a pair; those of a missing side are null."""
        time, row = self.config.time, {}
        for name in self.config.right:
            value = None if right is None else right.get(name)
            if name == time:
                row[RIGHT_TIME] = value
            elif name in self.agree:
                row[name] = value
            else:
                row[f"{name}_right" if name in self.config.left else name] = value
        for name in self.config.left if left is not None else ():
            row[LEFT_TIME if name == time else name] = left.get(name) if left is not None else None
        return row
