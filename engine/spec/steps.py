"""Map, filter and flat-map: steps on each record by itself, as SQL expressions or functions over columns.

A step sees columns and no state, so it runs wherever the records are decoded: on the map side, or in the shard.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl
import pyarrow as pa

from engine.columns.dictionaries import compact
from engine.spec.columns import unknown
from engine.spec.errors import NewnormalError
from engine.spec.expressions import expression, of_64_bits, values
from engine.spec.log_place import HIDDEN

LABEL = pa.dictionary(pa.int32(), pa.string())
Rows = list[dict[str, Any]]


class Step(ABC):
    """A step on records: map, filter or flat-map."""

    @abstractmethod
    def apply(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Returns the records after the step. It returns all columns even if there are no records."""

    def keeps(self, column: str) -> bool:
        """True if the step certainly leaves a column unchanged."""
        return False


@dataclass(frozen=True)
class Where(Step):
    """Keeps the records for which a condition is true (not false, not null).

    >>> Where("value > 1").apply(pl.DataFrame({"value": [1, 2, None]}))["value"].to_list()
    [2]
    """

    condition: str

    def __post_init__(self) -> None:
        expression(self.condition, "filter")

    def apply(self, frame: pl.DataFrame) -> pl.DataFrame:
        return frame.filter(values(self.condition, frame))

    def keeps(self, column: str) -> bool:
        return True


@dataclass(frozen=True)
class Columns(Step):
    """Sets columns to expressions.

    Args:
        columns: Name and SQL expression of each.
        only: Whether all other columns are dropped.

    >>> Columns((("twice", "value * 2"),)).apply(pl.DataFrame({"value": [1]})).row(0)
    (1, 2)
    """

    columns: tuple[tuple[str, str], ...]
    only: bool = False

    def __post_init__(self) -> None:
        for name, text in self.columns:
            expression(text, name)

    def apply(self, frame: pl.DataFrame) -> pl.DataFrame:
        computed = [values(text, frame).alias(name) for name, text in self.columns]
        hidden = [name for name in frame.columns if name.startswith(HIDDEN)]
        return frame.select(*computed, *hidden) if self.only else frame.with_columns(computed)

    def keeps(self, column: str) -> bool:
        sets = dict(self.columns)
        return sets.get(column, column if not self.only else None) == column


@dataclass(frozen=True)
class Explode(Step):
    """Makes one record for each element of a list column; no record for an empty or absent list.

    >>> Explode("a").apply(pl.DataFrame({"a": [[1, 2], []], "b": [3, 4]})).rows()
    [(1, 3), (2, 3)]
    """

    column: str

    def apply(self, frame: pl.DataFrame) -> pl.DataFrame:
        return frame.filter(pl.col(self.column).list.len() > 0).explode(self.column)

    def keeps(self, column: str) -> bool:
        return column != self.column


@dataclass(frozen=True)
class Apply(Step):
    """A function over columns. It must treat each record by itself, and is also called with no records.

    Its numbers follow the rule of expressions: 64 bits, and null for what is no finite number.

    Args:
        function: Takes and returns a Polars frame; defined in a module, so that workers can import it.
        arrow: Whether the function takes and returns Arrow tables instead.
    """

    function: Callable[[Any], Any]
    arrow: bool = False

    def apply(self, frame: pl.DataFrame) -> pl.DataFrame:
        return of_64_bits(_frame(self.function(plain(frame) if self.arrow else frame)))


def apply(steps: Iterable[Step], table: pa.Table) -> pa.Table:
    """Applies some steps to an Arrow table."""
    steps = tuple(steps)
    return plain(applied(steps, _frame(table))) if steps else table


def after(steps: Iterable[Step], columns: pa.Schema, where: str = "") -> pa.Schema:
    """The columns after some steps.

    Args:
        steps: The steps.
        columns: The columns of the records that come in.
        where: The call that has the steps, for messages.

    Raises:
        NewnormalError: ``COLUMN_UNKNOWN`` if a step names a column that does not exist; ``EXPRESSION_INVALID`` if an
            expression does not fit the types of its columns; ``STEP_FAILED`` if a function fails without records.
    """
    for step in steps:
        place = where or repr(step)
        try:
            columns = apply([step], pa.Table.from_batches([], columns)).schema
        except pl.exceptions.ColumnNotFoundError as error:
            raise unknown(error, columns, place) from None
        except pl.exceptions.PolarsError as error:
            accepted = ", ".join(f"{field.name} ({field.type})" for field in columns if not field.name.startswith("__"))
            raise NewnormalError("EXPRESSION_INVALID", str(error).splitlines()[0], place, accepted, "no job") from None
        except Exception as error:
            what = f"{type(error).__name__}: {error}"
            accepted = "a function that takes a table without rows and returns one with its columns"
            raise NewnormalError("STEP_FAILED", what, place, accepted, "no job") from error
    return columns


def applied(steps: Iterable[Step], frame: pl.DataFrame) -> pl.DataFrame:
    """Applies some steps to a Polars frame."""
    for step in steps:
        frame = step.apply(frame)
    return frame


def row_by_row(steps: Sequence[Step], rows: Rows, schema: pa.Schema | None = None) -> Rows:
    """Applies steps to one record at a time, which is their specification.

    Args:
        steps: The steps.
        rows: The records.
        schema: Their columns; ``None``: they are inferred from the values.
    """
    if not steps:
        return rows
    results: Rows = []
    for row in rows:
        one = pl.DataFrame([row]) if schema is None else _frame(pa.Table.from_pylist([row], schema))
        results += applied(steps, one).to_dicts()
    return results


def plain(frame: pl.DataFrame) -> pa.Table:
    """An Arrow table with the types of our records: 32-bit strings, and dictionaries of only the values in use."""
    table = frame.to_arrow()
    for i, field in enumerate(table.schema):
        kind: pa.DataType | None = None
        if pa.types.is_dictionary(field.type):
            table = table.set_column(i, pa.field(field.name, LABEL), compact(table.column(i), LABEL))
        elif pa.types.is_large_string(field.type) or pa.types.is_string_view(field.type):
            kind = pa.string()
        elif pa.types.is_large_binary(field.type):
            kind = pa.binary()
        if kind is not None:
            table = table.set_column(i, pa.field(field.name, kind), table.column(i).cast(kind))
    return table


def _frame(table: Any) -> pl.DataFrame:
    frame = table if isinstance(table, pl.DataFrame) else pl.from_arrow(table)
    assert isinstance(frame, pl.DataFrame)
    return frame
