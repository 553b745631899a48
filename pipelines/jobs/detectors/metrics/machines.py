"""The models of whole machines: one per width (number of columns), and which of them judges which metric.

Blocks of metrics (`pipelines.jobs.detectors.metrics.blocks`) whose models have the same width are judged by one
model. If a block gets more metrics than its model has columns, a wider model takes over what that one knows.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from models.machine.blocks import LARGEST_BLOCK, join_blocks
from models.machine.config import MultivariateConfig
from models.machine.joined import Together, Windows
from models.machine.multivariate import Multivariate
from models.numbers.arrays import Array, Columns, Ints
from pipelines.jobs.detectors.metrics.blocks import KEY, WIDTHS, width_of
from pipelines.jobs.detectors.metrics.state import DetectionState
from pipelines.jobs.detectors.state_table import StateTable


def new_columns(n: int) -> Columns:
    """The state column for n machines: number of columns in use."""
    return {"machine.metrics": np.zeros(n, np.int64)}


def new_slots(n: int) -> Columns:
    """The state column for n series: the column of the machine that the series uses; -1: none yet."""
    return {"machine.column": np.full(n, -1, np.int64)}


class _Parts(NamedTuple):
    """The windows of machines, divided by block: b windows of blocks that have n values.

    Attributes:
        first: Number of the first of each machine's window, and b at the end, shape (m + 1,).
        entity: Row of the machine, shape (b,).
        block: Number of the block in its machine, shape (b,).
        width: Of the block's model at that window, shape (b,).
        part: Of each value, the number of its block's window, shape (n,).
        column: Of each value, its column in the block, shape (n,).
    """

    first: Ints
    entity: Ints
    block: Ints
    width: Ints
    part: Ints
    column: Ints


class Machines:
    """The models of whole machines, one per width. It holds no state itself.

    Args:
        config: The constants of the models.
        learning: Windows of a machine before it is judged.
    """

    def __init__(self, config: MultivariateConfig, learning: int) -> None:
        self.models = {width: Multivariate(config, width, learning) for width in WIDTHS}

    def new_tables(self) -> dict[int, StateTable]:
        """Empty state tables, by width."""
        return {width: StateTable(KEY, model.new_state) for width, model in self.models.items()}

    def step(
        self,
        state: DetectionState,
        windows: Windows,
        series: Ints,
        value: Array,
        seen: Array | None = None,
        learned: Array | None = None,
    ) -> Together:
        """Judges windows of machines with two or more metrics one after the other, and learns from them.

        Args:
            state: The state; the rows of these machines and series are changed.
            windows: The windows, those of a machine in order of time, with the start of each as its time.
            series: Row of the series of each value, shape (n,).
            value: The values; NaN if missing, shape (n,).
            seen: The values that are judged, NaN where a rule mutes them; ``None``: all values, shape (n,).
            learned: The values that are learned, NaN where a rule forbids it; ``None``: all values, shape (n,).
        """
        parts = self._parts(state, windows, series)
        b, n = len(parts.entity), len(series)
        judged = np.isfinite(value if seen is None else seen)
        evidence, metrics = np.zeros(b), np.bincount(parts.part[judged], minlength=b).astype(np.float64)
        shares, expected = np.zeros(n), np.full(n, np.nan)
        for width in np.unique(parts.width).tolist():
            here = np.flatnonzero(parts.width == width)
            at = np.full(b, -1)
            at[here] = np.arange(len(here))
            own = np.flatnonzero(at[parts.part] >= 0)
            cells = at[parts.part[own]], parts.column[own]
            matrices = np.full((2, len(here), width), np.nan)
            for matrix, values in zip(matrices, (seen, learned), strict=True):
                matrix[cells] = (value if values is None else values)[own]
            apart = None if seen is None and learned is None else matrices[1]
            rows = self._rows(state, width, parts.entity[here], parts.block[here])
            time = np.repeat(windows.time, np.diff(parts.first))[here]
            verdicts = self.models[width].step(state.machines[width].columns, rows, time, matrices[0], learned=apart)
            evidence[here] = -np.log(verdicts.probability)
            shares[own], expected[own] = verdicts.shares[cells], verdicts.expected[cells]
        whole, of_block = join_blocks(parts.first, evidence, metrics)
        shares *= of_block[parts.part]
        added = np.bincount(windows.place, shares)  # not 1 where a block is new, and says nothing of its metrics
        return Together(whole, shares / np.where(added > 0, added, 1.0)[windows.place], expected)

    def shift(self, state: DetectionState, owner: Ints, series: Ints, offset: Array) -> None:
        """Shifts the typical value of some metrics in the models of their machines.

        Args:
            state: The state; the rows of these machines are changed.
            owner: Row of the machine of each metric, shape (n,).
            series: Row of the series of each metric, shape (n,).
            offset: The change of the level of each metric, shape (n,).
        """
        column: Ints = state.series.columns["machine.column"][series].astype(np.int64)
        in_model = np.flatnonzero(column >= 0)
        owner, column, offset = owner[in_model], column[in_model], offset[in_model]
        block, column = np.divmod(column, LARGEST_BLOCK)
        widths = width_of(state.entities.columns["machine.metrics"][owner].astype(np.int64), block)
        for width in np.unique(widths).tolist():
            here = np.flatnonzero(widths == width)
            rows = self._rows(state, width, owner[here], block[here])
            self.models[width].shift(state.machines[width].columns, rows, column[here], offset[here])

    def _parts(self, state: DetectionState, windows: Windows, series: Ints) -> _Parts:
        """Divides windows of machines by block; new metrics get a column."""
        place = windows.place
        metrics = self._metrics(state, windows, place, series)
        block, column = np.divmod(state.series.columns["machine.column"][series].astype(np.int64), LARGEST_BLOCK)
        blocks = int(block.max(initial=0)) + 1
        parts, part = np.unique(place * blocks + block, return_inverse=True)
        window, number = np.divmod(parts, blocks)
        first = np.searchsorted(window, np.arange(len(windows.entity) + 1))
        return _Parts(first, windows.entity[window], number, width_of(metrics[window], number), part, column)

    def _metrics(self, state: DetectionState, windows: Windows, place: Ints, series: Ints) -> Ints:
        """How many metrics each window's machine has had up to then, shape (m,); new metrics get a column."""
        entity = windows.entity
        slots: Ints = state.series.columns["machine.column"]  # type: ignore[assignment]
        taken: Ints = state.entities.columns["machine.metrics"]  # type: ignore[assignment]
        metrics = taken[entity]
        new = np.flatnonzero(slots[series] < 0)
        if not len(new):
            return metrics
        new = np.sort(new[np.unique(series[new], return_index=True)[1]])
        newcomers, in_order = entity[place[new]], np.argsort(entity, kind="stable")
        metrics[in_order] += _running(np.bincount(place[new], minlength=len(entity))[in_order], entity[in_order])
        new, newcomers = (column[np.argsort(newcomers, kind="stable")] for column in (new, newcomers))
        slots[series[new]] = taken[newcomers] + _running(np.ones(len(new), np.int64), newcomers) - 1
        np.maximum.at(taken, entity, metrics)
        return metrics

    def _rows(self, state: DetectionState, width: int, entity: Ints, block: Ints) -> Ints:
        """The row of each block in the table of models of a width.

        A block that has no model of this width takes over what its narrower model knows.
        """
        table, blocks = state.machines[width], int(block.max(initial=0)) + 1
        distinct, among = np.unique(entity * blocks + block, return_inverse=True)
        entities, numbers = np.divmod(distinct, blocks)
        keys = [(*name, str(number)) for name, number in zip(state.entities.names_of(entities), numbers, strict=True)]
        new = [key for key, has_model in zip(keys, table.has(keys), strict=True) if not has_model]
        rows = table.rows(keys)
        for narrower in WIDTHS[: WIDTHS.index(width)]:  # of several the widest is the latest
            before = state.machines[narrower]
            grown = [key for key, has_model in zip(new, before.has(new), strict=True) if has_model]
            if grown:
                old = before.find(grown)
                known_of = {name: column[old] for name, column in before.columns.items()}
                self.models[width].widen(table.columns, table.find(grown), known_of, narrower)
        return rows[among]


def _running(numbers: Ints, group: Ints) -> Ints:
    """The running sum of numbers in each group; those of a group are adjacent.

    >>> _running(np.array([1, 2, 0, 5]), np.array([7, 7, 9, 9]))
    array([1, 3, 0, 5])
    """
    sums = np.cumsum(numbers)
    starts = np.flatnonzero(np.diff(group, prepend=group[0] - 1)) if len(group) else np.zeros(0, np.int64)
    before = np.where(starts > 0, sums[starts - 1], 0)
    sizes = np.diff(np.append(starts, len(group)))
    result: Ints = sums - np.repeat(before, sizes)
    return result
