"""Columns of state and the blocks of memory that they lie in: one record a row, of one column or of several.

The models let columns share the memory of a table of records (`models.records.Layout`); other columns are blocks of
their own.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from models.numbers.arrays import Columns

Block = NDArray[np.generic]


class _Place(NamedTuple):
    """Where a column lies: its block, the first byte in a row of it, and the type and the steps within a row."""

    block: int
    offset: int
    kind: np.dtype[np.generic]
    shape: tuple[int, ...]
    strides: tuple[int, ...]


class ColumnBlocks:
    """How columns lie in blocks.

    Args:
        one: The columns of one row.

    >>> blocks = ColumnBlocks({"mean": np.zeros(1), "levels": np.zeros((1, 2), np.float32)})
    >>> memory = blocks.new(3)
    >>> columns = blocks.columns(memory)
    >>> columns["levels"][1] = 5.0, 7.0
    >>> memory[1].tolist()
    [[0.0, 0.0], [5.0, 7.0], [0.0, 0.0]]
    """

    def __init__(self, one: Columns) -> None:
        blocks: dict[int, Block] = {}
        self._places: dict[str, _Place] = {}
        for name, column in one.items():
            base = column.base
            shared = isinstance(base, np.ndarray) and base.dtype.names is not None and len(base) == len(column)
            block: Block = base if shared else np.ascontiguousarray(column)  # type: ignore[assignment]
            blocks.setdefault(id(block), block)
            at = list(blocks).index(id(block))
            offset = column.ctypes.data - block.ctypes.data if shared else 0
            own = column if shared else block
            self._places[name] = _Place(at, offset, column.dtype, column.shape[1:], own.strides[1:])
        self._kept = list(blocks.values())
        self.kinds = [np.dtype((block.dtype, block.shape[1:])) for block in self._kept]
        """The type of a row of each block, with its shape."""

    def new(self, n: int) -> list[Block]:
        """Blocks of n rows, all 0."""
        return [np.zeros(n, kind) for kind in self.kinds]

    def columns(self, blocks: list[Block]) -> Columns:
        """The columns that lie in some blocks, which are not empty."""
        columns: Columns = {}
        for name, place in self._places.items():
            block = blocks[place.block]
            strides = (block.strides[0], *place.strides)
            shape = (len(block), *place.shape)
            columns[name] = np.ndarray(shape, place.kind, block, place.offset, strides)
        return columns
