"""State of keys as a table: one row a key, named columns; a column that an older state lacks gets its default."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from engine.columns.arrays import Columns, Default
from engine.columns.packing import alike, firsts
from engine.state.segments import ShardState, Tables, pack, unpack

LARGE, MOST_PARTS = 50_000, 8
_ROW = "__row"
_TYPES: dict[type, tuple[Any, type[pl.DataType]]] = {
    bool: (np.bool_, pl.Boolean),
    int: (np.int64, pl.Int64),
    float: (np.float64, pl.Float64),
    str: (object, pl.String),
}


class KeyTable:
    """Rows by key.

    Args:
        key: Key columns.
        defaults: Name of each state column and its value in a new row; its type is the column's.

    >>> table = KeyTable(["k"], {"n": 0})
    >>> rows = table.rows(pl.DataFrame({"k": ["a", "b", "a"]}))
    >>> rows.tolist(), table.columns["n"].tolist()
    ([0, 1, 0], [0, 0])
    """

    def __init__(self, key: Sequence[str], defaults: Mapping[str, Default]) -> None:
        self.key, self.defaults = list(key), dict(defaults)
        self.keys: pl.DataFrame | None = None
        self.columns: Columns = {name: self._fresh(name, 0) for name in self.defaults}
        self.touched: list[npt.NDArray[np.int64]] = []
        self.stored: int | None = None
        """Rows that the state has; ``None`` if it must be written as a whole."""

    @classmethod
    def load(cls, key: Sequence[str], defaults: Mapping[str, Default], state: ShardState) -> KeyTable:
        """The table in segment ``keys``, and what later batches changed of it."""
        table, stored = cls(key, defaults), state.get("keys")
        if stored is not None:
            table._extend(unpack(stored)["keys"])
            for part in range(state.notes.get("key_parts", 0)):
                table._change(unpack(state.get(f"keys/{part}") or b""))
            table.stored = table.height
        return table

    def save(self, state: ShardState) -> None:
        """Inverse of `load`; of a large table only the rows that were touched are written, as one more part."""
        parts = state.notes.get("key_parts", 0)
        rows = np.unique(np.concatenate(self.touched)) if self.touched else np.zeros(0, np.int64)
        few = self.height >= LARGE and len(rows) * MOST_PARTS < self.height
        if few and self.stored is not None and self.keys is not None and parts < MOST_PARTS:
            changes = self._columns(rows).with_columns(pl.Series(_ROW, rows))
            state.put(f"keys/{parts}", pack({"changes": changes, "new": self.keys[self.stored :]}))
            state.notes["key_parts"] = parts + 1
            return
        for part in range(parts):
            state.remove(f"keys/{part}")
        state.notes["key_parts"] = 0
        if self.keys is None or not self.keys.height:
            state.remove("keys")
        else:
            state.put("keys", pack({"keys": pl.concat([self.keys, self._columns()], how="horizontal")}))

    def touch(self, rows: npt.NDArray[np.int64]) -> None:
        """Says that rows have changed."""
        self.touched.append(rows)

    def _columns(self, rows: npt.NDArray[np.int64] | slice = slice(None)) -> pl.DataFrame:
        kinds = {name: _TYPES[type(default)][1] for name, default in self.defaults.items()}
        return pl.DataFrame([pl.Series(name, self.columns[name][rows], kinds[name]) for name in self.defaults])

    def _extend(self, frame: pl.DataFrame) -> None:
        """Adds rows: keys, and the columns that are known of them."""
        keys = frame.select(self.key)
        self.keys = keys if self.keys is None else pl.concat([self.keys, keys], how="vertical_relaxed")
        for name, column in self.columns.items():
            values = _array(frame[name]) if name in frame.columns else self._fresh(name, frame.height)
            self.columns[name] = np.concatenate([column, values]) if len(column) else values

    def _change(self, part: Tables) -> None:
        """Does what a later batch did."""
        self._extend(part["new"])
        changes = part["changes"]
        for name, column in self.columns.items():
            if name in changes.columns:
                column[changes[_ROW].to_numpy()] = _array(changes[name])

    @property
    def height(self) -> int:
        """Number of keys."""
        return 0 if self.keys is None else self.keys.height

    def rows(self, records: pl.DataFrame) -> npt.NDArray[np.int64]:
        """The row of each record's key; of a new key a new row."""
        asked, known = records.select(self.key), self.height
        keys = asked if self.keys is None else pl.concat([self.keys, asked], how="vertical_relaxed")
        first = firsts(*alike([keys], self.key))[known:]
        new = np.unique(first[first >= known])
        if len(new) or self.keys is None:
            self._extend(asked[new - known])
        return np.where(first < known, first, known + np.searchsorted(new, first))

    def keep(self, rows: npt.NDArray[np.bool_]) -> None:
        """Forgets all other rows."""
        if self.keys is not None:
            if rows.all():
                return
            self.keys, self.stored = self.keys.filter(pl.Series(rows)), None
            self.columns = {name: column[rows] for name, column in self.columns.items()}

    def reset(self, rows: npt.NDArray[np.int64]) -> None:
        """Makes rows as new."""
        for name, column in self.columns.items():
            column[rows] = self.defaults[name]

    def _fresh(self, name: str, n: int) -> npt.NDArray[Any]:
        return np.full(n, self.defaults[name], _TYPES[type(self.defaults[name])][0])


def _array(series: pl.Series) -> npt.NDArray[Any]:
    return np.array(series.to_list(), object) if series.dtype == pl.String else series.to_numpy().copy()
