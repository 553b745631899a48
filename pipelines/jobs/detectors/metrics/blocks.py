"""How the metrics of a machine are divided into blocks, each of which has a model of its own.

A metric keeps its column for ever. The first columns are the first block, those that follow the second, and so on; a
machine's last block grows through models of several widths.
"""

from __future__ import annotations

import numpy as np
import polars as pl
import pyarrow as pa

from models.machine.blocks import LARGEST_BLOCK
from models.numbers.arrays import Flags, Ints
from pipelines.jobs.detectors.state_table import StateTable

WIDTHS = (4, 8, 16, LARGEST_BLOCK)
"""Columns that a model may have."""

KEY = ("entity", "block")
"""The parts of the key of a block's model in its table."""


def width_of(metrics: Ints, block: Ints) -> Ints:
    """Width of the model of some blocks.

    Args:
        metrics: How many metrics the machine of each block has, shape (n,).
        block: Number of the block, shape (n,).

    >>> width_of(np.array([5, 40, 40]), np.array([0, 0, 1]))
    array([ 8, 32,  8])
    """
    own = np.clip(metrics - LARGEST_BLOCK * block, 0, LARGEST_BLOCK)
    widths: Ints = np.array(WIDTHS)[np.searchsorted(WIDTHS, own)]
    return widths


def in_use(table: StateTable, width: int, entities: StateTable) -> Flags:
    """For each row of the table of models of a width whether its block has that width still.

    Args:
        table: The table, with the keys `KEY`.
        width: The width.
        entities: The machines, with the column ``machine.metrics``.
    """
    keys = table.index.keys
    metrics = entities.columns["machine.metrics"][entities.find(keys)].astype(np.int64)
    flags: Flags = width_of(metrics, keys[KEY[1]].cast(pl.Int64).to_numpy()) == width
    return flags


def most_in_use(width: int, metrics: Ints) -> int:
    """How many blocks of some machines have a width, which is how many models of it are in use at most.

    Args:
        width: The width.
        metrics: How many metrics each machine has, shape (n,).

    >>> [most_in_use(width, np.array([3, 32, 70])) for width in WIDTHS]
    [1, 1, 0, 3]
    """
    full, rest = np.divmod(metrics, LARGEST_BLOCK)
    last = (rest > 0) & (width_of(rest, np.zeros_like(rest)) == width)
    return int(last.sum() + (full.sum() if width == LARGEST_BLOCK else 0))


def from_earlier(table: pa.Table) -> pa.Table:
    """A table of models as it is read; that of a version whose machines had one block each gets the part of the key."""
    if KEY[1] in table.column_names:
        return table
    return table.append_column(KEY[1], pa.array(["0"] * table.num_rows, pa.string()))
