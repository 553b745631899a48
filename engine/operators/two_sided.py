"""What operators on two streams share: which records are left and which are right, and the columns of a pair."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import polars as pl
import pyarrow as pa

from engine.operators.ordered import EventTimeOrdered
from engine.spec.columns import require
from engine.spec.inputs import INPUT

LEFT_TIME, RIGHT_TIME = "left_time", "right_time"


@dataclass(frozen=True, kw_only=True)
class TwoSided(EventTimeOrdered):
    """An operator on two streams.

    A pair has the key, all other columns of the left record, those of the right one (``<name>_right`` where the left
    one has such a column too), and ``left_time`` and ``right_time``.

    Args:
        split: Number of the first input on the right.
        left: Columns of the records on the left.
        right: Those on the right.
    """

    broadcast: ClassVar[bool] = False
    """Whether the right stream goes to all shards."""

    split: int = 1
    left: tuple[str, ...] = ()
    right: tuple[str, ...] = ()

    def sided(self, split: int, left: Iterable[str], right: Iterable[str]) -> Self:
        """This operator, put on two streams with these columns."""
        return replace(self, split=split, left=tuple(left), right=tuple(right))


def pair_columns(config: TwoSided, on: Sequence[str], given: pa.Schema) -> list[pa.Field]:
    """The columns of a pair: those on the left, then those on the right.

    Raises:
        NewnormalError: ``COLUMN_UNKNOWN`` if the streams do not both have the columns in which a pair agrees.
    """
    where = f"{type(config).__name__}"
    for side in (config.left, config.right):
        require(on, pa.schema([given.field(name) for name in side]), where)
    sides = Sides(config, on)
    names = [*sides.left_names.items(), *((c, name) for c, name in sides.right_names.items() if c not in on)]
    return [pa.field(name, given.field(column).type) for column, name in names]


class Sides:
    """Cuts the records of a job in two.

    Args:
        config: Names of the columns.
        on: The columns in which the two of a pair agree.
    """

    def __init__(self, config: TwoSided, on: Sequence[str]) -> None:
        self.split, self.on, self.time = config.split, list(on), config.time
        mine = [c for c in config.left if c not in (*self.on, self.time)]
        theirs = [c for c in config.right if c not in (*self.on, self.time)]
        self.left_names = {**{c: c for c in self.on}, self.time: LEFT_TIME, **{c: c for c in mine}}
        self.right_names = {c: c for c in self.on} | {self.time: RIGHT_TIME}
        self.right_names |= {c: f"{c}_right" if c in config.left else c for c in theirs}

    def cut(self, records: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
        """Left and right records under the names that they have in a pair."""
        if not records.height:
            return pl.DataFrame(), pl.DataFrame()
        is_left = pl.col(INPUT) < self.split
        left = records.filter(is_left).select(pl.col(c).alias(name) for c, name in self.left_names.items())
        right = records.filter(~is_left).select(pl.col(c).alias(name) for c, name in self.right_names.items())
        return left, right
