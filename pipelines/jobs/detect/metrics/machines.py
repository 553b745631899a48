"""The models of whole machines: one model per width (number of columns), and the column of each metric in it.

Machines whose models have the same width are judged by one model. A metric keeps its column for ever. If a machine gets
more metrics than its model has columns, a wider model replaces it and starts to learn anew. Metrics beyond the widest
model are judged only on their own.
"""

from __future__ import annotations

import numpy as np

from models.arrays import Array, Columns, Ints
from models.joined import Together, Windows
from models.multivariate.config import MultivariateConfig
from models.multivariate.machine import Multivariate
from pipelines.jobs.detect.metrics.state import DetectionState
from pipelines.jobs.detect.state_table import StateTable

WIDTHS = (4, 8, 16, 32)


def new_columns(n: int) -> Columns:
    """The state columns for n machines: width of the model, row in the model's table, number of columns in use."""
    return {name: np.zeros(n, np.int64) for name in ("machine.width", "machine.row", "machine.metrics")}


def new_slots(n: int) -> Columns:
    """The state column for n series: the column of the machine's model that the series uses; -1: none yet."""
    return {"machine.column": np.full(n, -1, np.int64)}


class Machines:
    """The models of whole machines, one per width. It holds no state itself.

    Args:
        config: The constants of the models.
    """

    def __init__(self, config: MultivariateConfig) -> None:
        self.models = {width: Multivariate(config, width) for width in WIDTHS}

    def new_tables(self) -> dict[int, StateTable]:
        """Empty state tables, by width."""
        return {width: StateTable(("entity",), model.new_state) for width, model in self.models.items()}

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
        place, m = windows.place, len(windows.entity)
        widths, rows = self._models_of(state, windows, place, series)
        column = state.series.columns["machine.column"][series].astype(np.int64)
        evidence, shares = np.zeros(m), np.zeros(len(series))
        expected = np.full(len(series), np.nan)
        for width in np.unique(widths).tolist():
            here = np.flatnonzero(widths == width)
            at = np.full(m, -1)
            at[here] = np.arange(len(here))
            in_it = (at[place] >= 0) & (column < width)
            matrices = np.full((2, len(here), width), np.nan)
            for matrix, values in zip(matrices, (seen, learned), strict=True):
                matrix[at[place[in_it]], column[in_it]] = (value if values is None else values)[in_it]
            apart = None if seen is None and learned is None else matrices[1]
            table = state.machines[width].columns
            state.machines[width].touch(rows[here])
            verdicts = self.models[width].step(table, rows[here], windows.time[here], matrices[0], learned=apart)
            evidence[here] = -np.log(verdicts.probability)
            cells = at[place[in_it]], column[in_it]
            shares[in_it], expected[in_it] = verdicts.shares[cells], verdicts.expected[cells]
        return Together(evidence, shares, expected)

    def shift(self, state: DetectionState, owner: Ints, series: Ints, offset: Array) -> None:
        """Shifts the typical value of some metrics in the models of their machines.

        Args:
            state: The state; the rows of these machines are changed.
            owner: Row of the machine of each metric, shape (n,).
            series: Row of the series of each metric, shape (n,).
            offset: The change of the level of each metric, shape (n,).
        """
        own, column = state.entities.columns, state.series.columns["machine.column"][series].astype(np.int64)
        widths = own["machine.width"][owner].astype(np.int64)
        rows = own["machine.row"][owner].astype(np.int64)
        for width in np.unique(widths[widths > 0]).tolist():
            here = (widths == width) & (column >= 0) & (column < width)
            state.machines[width].touch(rows[here])
            self.models[width].shift(state.machines[width].columns, rows[here], column[here], offset[here])

    def _models_of(self, state: DetectionState, windows: Windows, place: Ints, series: Ints) -> tuple[Ints, Ints]:
        """Width of the model of each window, and the machine's row in its table; both of shape (m,).

        New metrics get a column; from its first window with more metrics than before on, a machine has a wider model.
        """
        own, entity = state.entities.columns, windows.entity
        slots: Ints = state.series.columns["machine.column"]  # type: ignore[assignment]
        taken: Ints = own["machine.metrics"]  # type: ignore[assignment]
        widths: Ints = own["machine.width"][entity].astype(np.int64)
        rows: Ints = own["machine.row"][entity].astype(np.int64)
        new = np.flatnonzero(slots[series] < 0)
        if not len(new):
            return widths, rows
        new = np.sort(new[np.unique(series[new], return_index=True)[1]])
        newcomers, in_order = entity[place[new]], np.argsort(entity, kind="stable")
        metrics = taken[entity]
        metrics[in_order] += _running(np.bincount(place[new], minlength=len(entity))[in_order], entity[in_order])
        new, newcomers = (column[np.argsort(newcomers, kind="stable")] for column in (new, newcomers))
        slots[series[new]] = taken[newcomers] + _running(np.ones(len(new), np.int64), newcomers) - 1
        np.maximum.at(taken, entity, metrics)
        needed = np.array(WIDTHS)[np.minimum(np.searchsorted(WIDTHS, metrics), len(WIDTHS) - 1)]
        for width in np.unique(needed[needed > widths]).tolist():
            wider = np.flatnonzero((needed == width) & (widths < width))
            machines, among = np.unique(entity[wider], return_inverse=True)
            rows[wider] = state.machines[width].rows(state.entities.names_of(machines))[among]
            widths[wider] = width
            own["machine.width"][machines], own["machine.row"][machines[among]] = width, rows[wider]
        return widths, rows


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
