"""The state of keys as a table with one row for each key; a column that an older state lacks gets its default."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from engine.columns.arrays import Columns, Default
from engine.columns.packing import alike, firsts
from engine.state.part_log import PartLog
from engine.state.segments import ShardState, Tables

LARGE, MOST_PARTS = 50_000, 8
_ROW = "__row"
_TYPES: dict[type, tuple[Any, type[pl.DataType]]] = {
    bool: (np.bool_, pl.Boolean),
    int: (np.int64, pl.Int64),
    float: (np.float64, pl.Float64),
    str: (object, pl.String),
}


class KeyTable:
    """A table with one row for each key.

    Args:
        key: The key columns.
        defaults: Name of each state column and its value in a new row, which also gives the type of the column.

    >>> table = KeyTable(["k"], {"n": 0})
    >>> rows = table.rows(pl.DataFrame({"k": ["a", "b", "a"]}))
    >>> rows.tolist(), table.columns["n"].tolist()
    ([0, 1, 0], [0, 0])
    """

    def __init__(self, key: Sequence[str], defaults: Mapping[str, Default]) -> None:
        self.key, self.defaults = list(key), dict(defaults)
        self.named = {name: f"__of_{name}" if name in self.key else name for name in self.defaults}
        """The name of each state column in the stored state, where a key may have its name."""
        self.keys: pl.DataFrame | None = None
        self.columns: Columns = {name: self._fresh(name, 0) for name in self.defaults}
        self.touched: list[npt.NDArray[np.int64]] = []
        self.stored: int | None = None
        """Number of rows in the stored state; ``None`` if the table must be written as a whole."""

    @classmethod
    def load(cls, key: Sequence[str], defaults: Mapping[str, Default], state: ShardState) -> KeyTable:
        """Loads the table from the log ``keys``: the first part is the whole table, each other one a later change."""
        table, log = cls(key, defaults), PartLog(state, "keys")
        for tables in map(log.read, log.parts):
            if "keys" in tables:
                table._extend(tables["keys"])
            else:
                table._change(tables)
        table.stored = table.height if log.parts else None
        return table

    @classmethod
    def joined(
        cls, key: Sequence[str], defaults: Mapping[str, Default], parts: Iterable[tuple[KeyTable, pl.Series]]
    ) -> KeyTable:
        """A table of some rows of other tables, which have different keys.

        Args:
            key: The key columns.
            defaults: As of the constructor.
            parts: Other tables, and which of their rows are wanted.
        """
        table = cls(key, defaults)
        for other, mine in parts:
            assert other.keys is not None
            table._extend(pl.concat([other.keys, other._columns()], how="horizontal").filter(mine))
        return table

    def save(self, state: ShardState) -> None:
        """Stores the table; of a large table only the changed rows, as one more part."""
        log = PartLog(state, "keys")
        rows = np.unique(np.concatenate(self.touched)) if self.touched else np.zeros(0, np.int64)
        few = self.height >= LARGE and len(rows) * MOST_PARTS < self.height
        if self.keys is None or not self.keys.height:
            log.forget(log.parts)
        elif few and self.stored is not None and len(log.parts) <= MOST_PARTS:
            changes = self._columns(rows).with_columns(pl.Series(_ROW, rows))
            log.append({"changes": changes, "new": self.keys[self.stored :]})
        else:
            log.replace(log.parts, {"keys": pl.concat([self.keys, self._columns()], how="horizontal")})

    def touch(self, rows: npt.NDArray[np.int64]) -> None:
        """Marks rows as changed."""
        self.touched.append(rows)

    def _columns(self, rows: npt.NDArray[np.int64] | slice = slice(None)) -> pl.DataFrame:
        kinds = {name: _TYPES[type(default)][1] for name, default in self.defaults.items()}
        return pl.DataFrame(
            [pl.Series(self.named[name], self.columns[name][rows], kinds[name]) for name in self.defaults]
        )

    def _extend(self, frame: pl.DataFrame) -> None:
        """Adds rows from their keys and those state columns that the frame has."""
        keys = frame.select(self.key)
        self.keys = keys if self.keys is None else pl.concat([self.keys, keys], how="vertical_relaxed")
        for name, column in self.columns.items():
            stored = self.named[name]
            values = _array(frame[stored]) if stored in frame.columns else self._fresh(name, frame.height)
            self.columns[name] = np.concatenate([column, values]) if len(column) else values

    def _change(self, part: Tables) -> None:
        """Applies the stored changes of one later micro-batch."""
        self._extend(part["new"])
        changes = part["changes"]
        for name, column in self.columns.items():
            if self.named[name] in changes.columns:
                column[changes[_ROW].to_numpy()] = _array(changes[self.named[name]])

    @property
    def height(self) -> int:
        """Number of keys."""
        return 0 if self.keys is None else self.keys.height

    def rows(self, records: pl.DataFrame) -> npt.NDArray[np.int64]:
        """The row of the key of each record; a new key gets a new row."""
        asked, height = records.select(self.key), self.height
        keys = asked if self.keys is None else pl.concat([self.keys, asked], how="vertical_relaxed")
        first = firsts(*alike([keys], self.key))[height:]
        new = np.unique(first[first >= height])
        if len(new) or self.keys is None:
            self._extend(asked[new - height])
        return np.where(first < height, first, height + np.searchsorted(new, first))

    def keep(self, rows: npt.NDArray[np.bool_]) -> None:
        """Keeps only these rows."""
        if self.keys is not None:
            if rows.all():
                return
            self.keys, self.stored = self.keys.filter(pl.Series(rows)), None
            self.columns = {name: column[rows] for name, column in self.columns.items()}

    def reset(self, rows: npt.NDArray[np.int64]) -> None:
        """Resets rows to the defaults."""
        for name, column in self.columns.items():
            column[rows] = self.defaults[name]

    def _fresh(self, name: str, n: int) -> npt.NDArray[Any]:
        return np.full(n, self.defaults[name], _TYPES[type(self.defaults[name])][0])


def _array(series: pl.Series) -> npt.NDArray[Any]:
    return np.array(series.to_list(), object) if series.dtype == pl.String else series.to_numpy().copy()
