"""Growing tables of state: a row per key, columns as NumPy arrays, stored as Arrow tables.

An Arrow table carries the columns by name. When it is read, a column that it lacks gets the values of a new key, and a
column that this version does not know is ignored.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence

import numpy as np
import polars as pl
import pyarrow as pa

from engine.spec.errors import NewnormalError
from models.arrays import Columns, Flags, Ints

Key = tuple[str, ...]


class StateTable:
    """Columns of state by key. Keys get rows in order of first appearance; a row never changes its number.

    Args:
        names: Names of the parts of a key.
        fresh: Makes the columns for n new keys.

    >>> table = StateTable(("entity", "metric"), lambda n: {"mean": np.zeros(n)})
    >>> table.rows([("a", "cpu"), ("b", "cpu"), ("a", "cpu")])
    array([0, 1, 0])
    >>> table.to_arrow().column("entity").to_pylist()
    ['a', 'b']
    """

    def __init__(self, names: Sequence[str], fresh: Callable[[int], Columns]) -> None:
        self.names, self._fresh = tuple(names), fresh
        self._row_of: dict[Key, int] = {}
        self._keys: list[Key] = []
        self.columns: Columns = fresh(0)
        self._capacity = 0

    def __len__(self) -> int:
        return len(self._row_of)

    def keys(self) -> list[Key]:
        """All keys, in order of their rows."""
        return list(self._row_of)

    def names_of(self, rows: Ints) -> list[Key]:
        """The keys of some rows."""
        if len(self._keys) < len(self._row_of):
            self._keys = list(self._row_of)
        return [self._keys[row] for row in rows.tolist()]

    def rows(self, keys: Iterable[Key]) -> Ints:
        """The row of each key; new keys get new rows. The capacity of the columns doubles when it is exhausted."""
        row_of = self._row_of
        found = np.array([row_of.setdefault(key, len(row_of)) for key in keys], dtype=np.int64)
        if len(row_of) > self._capacity:
            before, self._capacity = self._capacity, max(len(row_of), 2 * self._capacity)
            grown = self._fresh(self._capacity)  # columns of a model may share memory: they are filled, not replaced
            for name, column in grown.items():
                column[:before] = self.columns[name][:before]
            self.columns = grown
        return found

    def has(self, keys: Iterable[Key]) -> Flags:
        """For each key whether the table has it."""
        row_of = self._row_of
        return np.array([key in row_of for key in keys], dtype=np.bool_)

    def find(self, keys: Iterable[Key]) -> Ints:
        """The rows of those keys that the table has; other keys are left out."""
        return np.array([self._row_of[key] for key in keys if key in self._row_of], dtype=np.int64)

    def only(self, first: Collection[str]) -> StateTable:
        """A table with copies of the rows whose keys begin with one of some names."""
        keys = [key for key in self._row_of if key[0] in first]
        part, rows = StateTable(self.names, self._fresh), self.find(keys)
        part.rows(keys)
        for name, column in part.columns.items():
            column[: len(rows)] = self.columns[name][rows]
        return part

    def replace(self, part: StateTable) -> None:
        """Copies all rows of another table into this one; rows with the same key are overwritten."""
        rows = self.rows(part.keys())
        for name, column in self.columns.items():
            column[rows] = part.columns[name][: len(rows)]

    def to_arrow(self) -> pa.Table:
        """An Arrow table with the parts of the key and all columns; a two-dimensional column holds fixed-size lists."""
        keys = list(zip(*self._row_of, strict=True)) or [()] * len(self.names)
        parts = {name: pa.array(part, pa.string()) for name, part in zip(self.names, keys, strict=True)}
        return pa.table(parts | {name: _to_arrow(column[: len(self)]) for name, column in self.columns.items()})

    def fill(self, table: pa.Table) -> None:
        """Copies all rows of an Arrow table into this table, which must be empty.

        Raises:
            NewnormalError: ``STATE_INVALID`` if a part of the key is missing or a column has another shape.
        """
        missing = [name for name in self.names if name not in table.column_names]
        if missing:
            raise _invalid(f"the table has no column {', '.join(missing)}", self.names)
        self.rows(zip(*(table.column(name).to_pylist() for name in self.names), strict=True))
        for name, column in self.columns.items():
            if name in table.column_names:
                values = _to_numpy(table.column(name))
                if values.shape[1:] != column.shape[1:]:
                    raise _invalid(f"column {name} has {values.shape[1:]} values a row, not {column.shape[1:]}", [name])
                column[: len(self)] = values

    def where(self, keep: Flags) -> StateTable:
        """A new table with some of the rows, in their order.

        Args:
            keep: For each row whether it is kept.
        """
        some = StateTable(self.names, self._fresh)
        some.fill(self.to_arrow().filter(pa.array(keep)))
        return some


def _to_arrow(column: np.ndarray) -> pa.Array:
    if column.ndim == 1:
        return pa.array(column)
    return pa.FixedSizeListArray.from_arrays(pa.array(column.reshape(-1)), column.shape[1])


def _to_numpy(column: pa.ChunkedArray) -> np.ndarray:
    array = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
    size = array.type.list_size if pa.types.is_fixed_size_list(array.type) else None
    values: np.ndarray = (array.flatten() if size else array).to_numpy(zero_copy_only=False)
    return values.reshape(len(array), size) if size else values


def _invalid(what: str, where: Sequence[str]) -> NewnormalError:
    return NewnormalError("STATE_INVALID", what, ", ".join(where), "tables as from to_tables", "nothing was restored")


def as_frame(table: pa.Table) -> pl.DataFrame:
    """An Arrow table as a Polars frame that shares its memory."""
    frame = pl.from_arrow(table)
    assert isinstance(frame, pl.DataFrame)
    return frame
