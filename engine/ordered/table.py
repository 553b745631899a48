"""State of keys as a table: one row a key, named columns; a column that an older state lacks gets its default."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from engine.packing import alike, firsts
from engine.state import ShardState, pack, unpack

Columns = dict[str, npt.NDArray[Any]]
Default = int | float | bool | str
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

    @classmethod
    def load(cls, key: Sequence[str], defaults: Mapping[str, Default], state: ShardState) -> KeyTable:
        """The table in segment ``keys``."""
        table, stored = cls(key, defaults), state.get("keys")
        if stored is not None:
            frame = unpack(stored)["keys"]
            table.keys = frame.select(key)
            for name in table.defaults:
                known = name in frame.columns
                table.columns[name] = _array(frame[name]) if known else table._fresh(name, frame.height)
        return table

    def save(self, state: ShardState) -> None:
        """Inverse of `load`."""
        if self.keys is None or not self.keys.height:
            state.remove("keys")
            return
        kinds = {name: _TYPES[type(default)][1] for name, default in self.defaults.items()}
        made = [pl.Series(name, self.columns[name], kinds[name]) for name in self.defaults]
        state.put("keys", pack({"keys": self.keys.with_columns(made)}))

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
            fresh = asked[new - known]
            self.keys = fresh if self.keys is None else pl.concat([self.keys, fresh], how="vertical_relaxed")
            for name, column in self.columns.items():
                self.columns[name] = np.concatenate([column, self._fresh(name, len(new))])
        return np.where(first < known, first, known + np.searchsorted(new, first))

    def keep(self, rows: npt.NDArray[np.bool_]) -> None:
        """Forgets all other rows."""
        if self.keys is not None:
            self.keys = self.keys.filter(pl.Series(rows))
            self.columns = {name: column[rows] for name, column in self.columns.items()}

    def reset(self, rows: npt.NDArray[np.int64]) -> None:
        """Makes rows as new."""
        for name, column in self.columns.items():
            column[rows] = self.defaults[name]

    def _fresh(self, name: str, n: int) -> npt.NDArray[Any]:
        return np.full(n, self.defaults[name], _TYPES[type(self.defaults[name])][0])


def _array(series: pl.Series) -> npt.NDArray[Any]:
    return np.array(series.to_list(), object) if series.dtype == pl.String else series.to_numpy().copy()
