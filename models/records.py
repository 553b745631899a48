"""State of series as records for kernels, and as columns for all others, in the same memory.

A column ``level.mean`` is the field ``mean`` of the field ``level`` of each series' record.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from models.numbers.arrays import Columns, Ints

Record = Any
"""One row of a table: kernels read and write its fields as attributes."""

Table = NDArray[np.void]
"""Records, shape (n,)."""


class _Fields(np.record):  # type: ignore[misc]  # it can be inherited from, whatever the stubs say
    """A record whose fields come before methods of its kind, of which one is called ``mean``: as kernels see it."""

    def __getattribute__(self, name: str) -> Any:
        dtype: np.dtype[np.void] = super().__getattribute__("dtype")
        return self[name] if name in (dtype.names or ()) else super().__getattribute__(name)

    def __setattr__(self, name: str, value: Any) -> None:
        self[name] = value


class Layout:
    """How columns lie in records.

    Args:
        columns: Of any number of series.

    >>> layout = Layout({"seen": np.zeros(0), "level.mean": np.zeros((0, 2), np.float32)})
    >>> columns = layout.columns(layout.table(3))
    >>> columns["level.mean"][1] = 5.0, 7.0
    >>> layout.records(columns)[1].level.mean
    array([5., 7.], dtype=float32)
    """

    def __init__(self, columns: Columns) -> None:
        self._paths = {name: name.split(".") for name in columns}
        self._first = next(iter(columns))
        tree: dict[str, Any] = {}
        for name, column in columns.items():
            *parents, last = self._paths[name]
            node = tree
            for parent in parents:
                node = node.setdefault(parent, {})
            node[last] = (column.dtype, column.shape[1:])
        self.kind = _nested(tree)

    def table(self, n: int) -> Table:
        """Records of n series, all fields 0."""
        return np.zeros(n, self.kind)

    def columns(self, table: Table) -> Columns:
        """The columns of a table, which share its memory."""
        columns: Columns = {}
        for name, path in self._paths.items():
            view: Any = table
            for part in path:
                view = view[part]
            columns[name] = view
        return columns

    def joined(self, columns: Columns) -> Columns:
        """Columns with these values that share the memory of one table."""
        n = len(next(iter(columns.values())))
        views = self.columns(self.table(n))
        for name, view in views.items():
            view[...] = columns[name]
        return views

    def records(self, columns: Columns) -> Table | None:
        """The table whose memory columns share; ``None`` if they do not."""
        first = columns[self._first]
        table = first.base
        if not isinstance(table, np.ndarray) or table.dtype != self.kind or len(table) != len(first):
            return None
        whole = first.strides[0] == table.strides[0] and all(columns[name].base is table for name in self._paths)
        return table if whole else None

    def gather(self, columns: Columns, rows: Ints) -> Table:
        """A copy of some rows, as a table."""
        table = self.records(columns)
        if table is not None:
            return table[rows]
        return self.records(self.joined({name: columns[name][rows] for name in self._paths}))  # type: ignore[return-value]

    def scatter(self, table: Table, columns: Columns, rows: Ints) -> None:
        """Writes a table back to the rows that it is a copy of."""
        for name, view in self.columns(table).items():
            columns[name][rows] = view

    @contextmanager
    def opened(self, columns: Columns, rows: Ints) -> Iterator[tuple[Table, Ints]]:
        """A table to change some rows in, and where they are in it; columns that are copies are written at the end.

        If the block raises an error, copies are left as they were, while shared memory may have been changed in part.

        Args:
            columns: The columns; changed.
            rows: The rows; one may stand several times, shape (n,).
        """
        table = self.records(columns)
        if table is not None:
            yield table, rows
            return
        distinct, places = np.unique(rows, return_inverse=True)
        table = self.gather(columns, distinct)
        yield table, places
        self.scatter(table, columns, distinct)


def record_type(parts: list[Any]) -> np.dtype[np.void]:
    """The type of records with these fields, which are given as to `numpy.dtype`."""
    kind: Any = (_Fields, parts)
    return np.dtype(kind)


def _nested(tree: Mapping[str, Any]) -> np.dtype[np.void]:
    return record_type(
        [(name, _nested(node)) if isinstance(node, dict) else (name, *node) for name, node in tree.items()]
    )


def record_of(columns: Columns) -> Record:
    """The record of a single series with these columns.

    >>> record_of({"level.mean": np.array([3.0])}).level.mean
    np.float64(3.0)
    """
    layout = Layout(columns)
    table = layout.records(layout.joined(columns))
    assert table is not None
    return table[0]


def constants(**groups: Any) -> Record:
    """Constants as a record that kernels can read: numbers as floats, dataclasses as records; texts are left out.

    What a dataclass derives of its fields once (`functools.cached_property`) is among its constants.

    >>> from dataclasses import dataclass
    >>> @dataclass
    ... class Pace:
    ...     slow: float = 0.5
    ...     zone: str = "UTC"
    >>> constants(pace=Pace(), few=3).pace.slow
    np.float64(0.5)
    """
    tree, values = _tree(groups)
    record = np.zeros(1, _nested(tree))
    _fill(record, values)
    return record[0]


def _tree(groups: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    tree: dict[str, Any] = {}
    values: dict[str, Any] = {}
    for name, value in groups.items():
        if is_dataclass(value):
            tree[name], values[name] = _tree({name_: getattr(value, name_) for name_ in _names(value)})
        elif isinstance(value, int | float):
            tree[name], values[name] = (np.dtype(np.float64), ()), float(value)
    return tree, values


def _names(value: Any) -> list[str]:
    derived = [name for name, what in vars(type(value)).items() if isinstance(what, cached_property)]
    return [*(field.name for field in fields(value)), *derived]


def _fill(record: Any, values: Mapping[str, Any]) -> None:
    for name, value in values.items():
        if isinstance(value, dict):
            _fill(record[name], value)
        else:
            record[name] = value
