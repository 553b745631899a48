"""Growing tables of state: a row per key, columns as NumPy arrays, stored as Arrow tables.

An Arrow table carries the columns by name. When it is read, a column that it lacks gets the values of a new key, and a
column that this version does not know is ignored. Numbers that an earlier version kept in 64 bits, and this one in 32,
are brought within what these can hold.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

import numpy as np
import polars as pl
import pyarrow as pa

from engine.spec.errors import NewnormalError
from engine.state.key_index import KeyIndex
from models.numbers.arrays import Columns, Flags, Ints
from pipelines.jobs.detectors.column_blocks import Block, ColumnBlocks

Key = tuple[str, ...]
Keys = pl.DataFrame | Iterable[Key]
"""Keys as tuples, or as a frame with a column for each part."""

_MOST_SPARE, _PIECE = 50_000, 50_000
"""Up to how many rows the capacity doubles when it is exhausted; how many new rows are made at once."""


class StateTable:
    """Columns of state by key. Keys get rows in order of first appearance; a row never changes its number.

    Args:
        names: Names of the parts of a key.
        fresh: Makes the columns for n new keys.

    Attributes:
        index: The keys and their rows.
        columns: The columns, some of whose rows may be spare.

    >>> table = StateTable(("entity", "metric"), lambda n: {"mean": np.zeros(n)})
    >>> table.rows([("a", "cpu"), ("b", "cpu"), ("a", "cpu")])
    array([0, 1, 0])
    >>> table.to_arrow().column("entity").to_pylist()
    ['a', 'b']
    """

    def __init__(self, names: Sequence[str], fresh: Callable[[int], Columns]) -> None:
        self.names, self._fresh = tuple(names), fresh
        self.index = KeyIndex(self.names)
        self.columns: Columns = fresh(0)
        self._capacity = 0
        self._layout: ColumnBlocks | None = None
        self._blocks: list[Block] = []
        self._touched: list[Ints] = []

    def __len__(self) -> int:
        return len(self.index)

    def keys(self) -> list[Key]:
        """All keys, in order of their rows."""
        return self.index.keys.rows()

    def names_of(self, rows: Ints) -> list[Key]:
        """The keys of some rows."""
        return self.index.keys[rows].rows() if len(rows) else []

    def rows(self, keys: Keys) -> Ints:
        """The row of each key, which counts as touched; new keys get new rows."""
        numbers = self.index.add(self._frame(keys))
        if len(self) > self._capacity:
            self._grow(max(len(self), self._capacity + max(min(self._capacity, _MOST_SPARE), self._capacity // 8)))
        self.touch(numbers)
        return numbers

    def has(self, keys: Keys) -> Flags:
        """For each key whether the table has it."""
        return self.index.find(self._frame(keys)) >= 0

    def find(self, keys: Keys) -> Ints:
        """The rows of those keys that the table has; other keys are left out."""
        numbers = self.index.find(self._frame(keys))
        return numbers[numbers >= 0]

    def rows_of(self, first: Collection[str]) -> Ints:
        """The rows whose keys begin with one of some names, ascending."""
        mine = pl.col(self.names[0]).is_in(pl.Series(list(first), dtype=pl.String).implode())
        return self.index.keys.select(mine.arg_true().cast(pl.Int64)).to_series().to_numpy()

    def touch(self, rows: Ints) -> None:
        """Marks rows as changed. All changes of rows must be marked, as only those are stored."""
        self._touched.append(rows)

    @property
    def touched(self) -> Ints:
        """The rows that have changed since the table was made or `stored`, ascending."""
        return np.unique(np.concatenate(self._touched)) if self._touched else np.zeros(0, np.int64)

    def stored(self) -> None:
        """Says that all rows are stored as they are now."""
        self._touched = []

    def only(self, first: Collection[str]) -> StateTable:
        """A table with copies of the rows whose keys begin with one of some names."""
        return self._part(self.rows_of(first))

    def where(self, keep: Flags) -> StateTable:
        """A new table with some of the rows, in their order.

        Args:
            keep: For each row whether it is kept.
        """
        return self._part(np.flatnonzero(keep))

    def _part(self, rows: Ints) -> StateTable:
        part = StateTable(self.names, self._fresh)
        part.rows(self.index.keys[rows])
        for name, column in part.columns.items():
            column[: len(rows)] = self.columns[name][rows]
        return part

    def replace(self, part: StateTable) -> None:
        """Copies all rows of another table into this one; rows with the same key are overwritten."""
        rows = self.rows(part.index.keys)
        for name, column in self.columns.items():
            column[rows] = part.columns[name][: len(rows)]

    def to_arrow(self, rows: Ints | slice | None = None) -> pa.Table:
        """An Arrow table with the parts of the key and all columns; a two-dimensional column holds fixed-size lists.

        Args:
            rows: The rows that are wanted; ``None``: all.
        """
        chosen = slice(0, len(self)) if rows is None else rows
        keys = self.index.keys[chosen]
        parts = {name: keys[name].to_arrow().cast(pa.string()) for name in self.names}
        return pa.table(parts | {name: _to_arrow(column[chosen]) for name, column in self.columns.items()})

    def fill(self, table: pa.Table) -> None:
        """Adds the rows of an Arrow table, whose keys this table must not have.

        Raises:
            NewnormalError: ``STATE_INVALID`` if a part of the key is missing or a column has another shape.

        >>> table = StateTable(("entity",), lambda n: {"squares": np.zeros(n, np.float32)})
        >>> table.fill(pa.table({"entity": ["a"], "squares": [1e40]}))
        >>> table.columns["squares"][:1]
        array([3.4028235e+38], dtype=float32)
        """
        missing = [name for name in self.names if name not in table.column_names]
        if missing:
            raise _invalid(f"the table has no column {', '.join(missing)}", self.names)
        self.change(self.rows(as_frame(table.select(list(self.names)))), table)

    def change(self, rows: Ints, table: pa.Table) -> None:
        """Overwrites rows by those of an Arrow table, whose keys are not looked at.

        Raises:
            NewnormalError: ``STATE_INVALID`` if a column has another shape.
        """
        for name, column in self.columns.items():
            if name in table.column_names:
                values = _to_numpy(table.column(name))
                if values.shape[1:] != column.shape[1:]:
                    raise _invalid(
                        f"column {name} has {values.shape[1:]} values per row, not {column.shape[1:]}", [name]
                    )
                column[rows] = _narrowed(values, column.dtype)

    def arrays(self) -> dict[str, Block]:
        """All but the keys themselves as arrays by name, which share the memory of the table."""
        self.kinds()
        assert self._layout is not None
        blocks = {str(number): block for number, block in enumerate(self._blocks or self._layout.new(0))}
        return blocks | {"hashes": self.index.hashes, "rows": self.index.rows}

    def kinds(self) -> dict[str, np.dtype[np.generic]]:
        """The types of `arrays`."""
        self._layout = self._layout or ColumnBlocks(self._fresh(1))
        blocks = {str(number): kind for number, kind in enumerate(self._layout.kinds)}
        return blocks | {"hashes": np.dtype(np.uint64), "rows": np.dtype(np.int64)}

    def adopt(self, arrays: Mapping[str, Block], keys: pl.DataFrame) -> None:
        """Takes over what is as from `arrays`, without a copy, and the keys."""
        self.kinds()
        assert self._layout is not None
        self.index.keys, self.index.hashes, self.index.rows = keys, arrays["hashes"], arrays["rows"]  # type: ignore[assignment]
        if len(self):
            self._blocks = [arrays[str(number)] for number in range(len(self._layout.kinds))]
            self.columns, self._capacity = self._layout.columns(self._blocks), len(self._blocks[0])

    def _frame(self, keys: Keys) -> pl.DataFrame:
        if isinstance(keys, pl.DataFrame):
            return keys.select(pl.col(self.names).cast(pl.String))
        return pl.DataFrame(list(keys), dict.fromkeys(self.names, pl.String), orient="row")

    def _grow(self, capacity: int) -> None:
        """Makes room for more rows. Columns of a model may share memory: they are filled, not replaced."""
        before, self._capacity = self._capacity, capacity
        self._layout = self._layout or ColumnBlocks(self._fresh(1))
        self._blocks = self._layout.new(capacity)
        grown = self._layout.columns(self._blocks)
        for name, column in grown.items():
            column[:before] = self.columns[name][:before]
        for start in range(before, capacity, _PIECE):
            piece = slice(start, min(start + _PIECE, capacity))
            for name, values in self._fresh(piece.stop - piece.start).items():
                grown[name][piece] = values
        self.columns = grown


def _to_arrow(column: np.ndarray) -> pa.Array:
    if column.ndim == 1:
        return pa.array(column)
    return pa.FixedSizeListArray.from_arrays(pa.array(column.reshape(-1)), column.shape[1])


def _to_numpy(column: pa.ChunkedArray) -> np.ndarray:
    array = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
    size = array.type.list_size if pa.types.is_fixed_size_list(array.type) else None
    values: np.ndarray = (array.flatten() if size else array).to_numpy(zero_copy_only=False)
    return values.reshape(len(array), size) if size else values


def _narrowed(values: np.ndarray, kind: np.dtype[np.generic]) -> np.ndarray:
    if values.dtype != np.float64 or kind != np.float32:
        return values
    most = float(np.finfo(np.float32).max)
    return values.clip(-most, most)


def _invalid(problem: str, where: Sequence[str]) -> NewnormalError:
    accepted, now = "tables as from to_tables", "nothing was restored"
    return NewnormalError("STATE_INVALID", problem, ", ".join(where), accepted, now)


def as_frame(table: pa.Table) -> pl.DataFrame:
    """An Arrow table as a Polars frame that shares its memory."""
    frame = pl.from_arrow(table)
    assert isinstance(frame, pl.DataFrame)
    return frame
