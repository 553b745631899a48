"""The base of joins: which records are left and which are right, and the columns of a pair."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, Self

import polars as pl
import pyarrow as pa

from engine.operators.ordered import EventTimeOrdered
from engine.spec.columns import require
from engine.spec.inputs import INPUT
from engine.spec.state_form import StateForm

LEFT_TIME, RIGHT_TIME = "left_time", "right_time"
How = Literal["inner", "left"]
"""Whether a left record without a pair gives no result, or one with nulls on the right."""


@dataclass(frozen=True, kw_only=True)
class TwoSided(EventTimeOrdered):
    """An operator on two streams (a join).

    A pair has the key, all other columns of the left record, those of the right one (``<name>_right`` where the left
    one has such a column too), and ``left_time`` and ``right_time``.

    Args:
        split: Number of the first input of the right stream.
        left: Columns of the left stream.
        right: Columns of the right stream.
    """

    free: ClassVar[tuple[str, ...]] = ("left", "right", "how", "where", "least")
    broadcast: ClassVar[bool] = False
    """Whether the right stream goes to all shards."""

    split: int = 1
    left: tuple[str, ...] = ()
    right: tuple[str, ...] = ()

    def state_form(self, columns: pa.Schema | None) -> StateForm | None:
        """The stored columns of both sides evolve; each keeps the name that it has in a pair."""
        form = super().state_form(columns)
        assert form is not None
        names = Sides(self, ()).right_names
        return StateForm(form.fixed, {**form.columns, **{f"{name} of the right": pair for name, pair in names.items()}})

    def sided(self, split: int, left: Iterable[str], right: Iterable[str]) -> Self:
        """This operator for two streams with these columns."""
        return replace(self, split=split, left=tuple(left), right=tuple(right))


def pair_columns(config: TwoSided, on: Sequence[str], columns: pa.Schema) -> list[pa.Field]:
    """The columns of a pair: first those of the left stream, then those of the right stream.

    Raises:
        NewnormalError: ``COLUMN_UNKNOWN`` if one of the streams lacks a column in which a pair must agree.
    """
    where = f"{type(config).__name__}"
    for side in (config.left, config.right):
        require(on, pa.schema([columns.field(name) for name in side]), where)
    sides = Sides(config, on)
    names = [*sides.left_names.items(), *((c, name) for c, name in sides.right_names.items() if c not in on)]
    return [pa.field(name, columns.field(column).type) for column, name in names]


class Sides:
    """Splits the records of a job into left and right ones.

    Args:
        config: The join, which names the columns.
        on: The columns in which the two records of a pair agree.
    """

    def __init__(self, config: TwoSided, on: Sequence[str]) -> None:
        self.split, self.on, self.time = config.split, list(on), config.time
        mine = [c for c in config.left if c not in (*self.on, self.time)]
        theirs = [c for c in config.right if c not in (*self.on, self.time)]
        self.left_names = {**{c: c for c in self.on}, self.time: LEFT_TIME, **{c: c for c in mine}}
        self.right_names = {c: c for c in self.on} | {self.time: RIGHT_TIME}
        self.right_names |= {c: f"{c}_right" if c in config.left else c for c in theirs}

    def cut(self, records: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
        """Left and right records, with columns named as in a pair."""
        if not records.height:
            return pl.DataFrame(), pl.DataFrame()
        is_left = pl.col(INPUT) < self.split
        left = records.filter(is_left).select(pl.col(c).alias(name) for c, name in self.left_names.items())
        right = records.filter(~is_left).select(pl.col(c).alias(name) for c, name in self.right_names.items())
        return left, right
