"""The models of whole machines: one model per width (number of columns), and the column of each metric in it.

Machines whose models have the same width are judged together. A metric keeps its column for ever. If a machine gets
more metrics than its model has columns, a wider model replaces it and starts to learn anew. Metrics beyond the widest
model are judged only on their own.
"""

from __future__ import annotations

import numpy as np

from models.arrays import Array, Columns, Ints
from models.joined import Together
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
        owner: Ints,
        series: Ints,
        time: Ints,
        value: Array,
        seen: Array | None = None,
        learned: Array | None = None,
    ) -> Together:
        """Judges one window of each of some machines with two or more metrics, and learns from it.

        Args:
            state: The state; the rows of these machines and series are changed.
            owner: Row of the machine of each value; the values of a machine are adjacent, shape (n,).
            series: Row of the series of each value, shape (n,).
            time: Start of the window of each value, epoch milliseconds, shape (n,).
            value: The values; NaN if missing, shape (n,).
            seen: The values that are judged, NaN where a rule mutes them; ``None``: all values, shape (n,).
            learned: The values that are learned, NaN where a rule forbids it; ``None``: all values, shape (n,).
        """
        entities, first, place = np.unique(owner, return_index=True, return_inverse=True)
        column = self._columns(state, owner, series)
        own = state.entities.columns
        widths: Ints = own["machine.width"][entities].astype(np.int64)
        rows: Ints = own["machine.row"][entities].astype(np.int64)
        evidence, shares = np.zeros(len(entities)), np.zeros(len(owner))
        expected = np.full(len(owner), np.nan)
        for width in np.unique(widths).tolist():
            here = np.flatnonzero(widths == width)
            at = np.full(len(entities), -1)
            at[here] = np.arange(len(here))
            in_it = (at[place] >= 0) & (column < width)
            model, columns, when = self.models[width], state.machines[width].columns, time[first[here]]
            matrices = np.full((2, len(here), width), np.nan)
            for matrix, values in zip(matrices, (seen, learned), strict=True):
                matrix[at[place[in_it]], column[in_it]] = (value if values is None else values)[in_it]
            apart = None if seen is None and learned is None else matrices[1]
            verdicts = model.step(columns, rows[here], when, matrices[0], learned=apart)
            evidence[here] = -np.log(verdicts.probability)
            cells = at[place[in_it]], column[in_it]
            shares[in_it], expected[in_it] = verdicts.shares[cells], verdicts.expected[cells]
        return Together(evidence, widths > 0, shares, expected)

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
            self.models[width].shift(state.machines[width].columns, rows[here], column[here], offset[here])

    def _columns(self, state: DetectionState, owner: Ints, series: Ints) -> Ints:
        """The model's column of each value; new metrics get a column, and machines a wider model if they need it."""
        slots: Ints = state.series.columns["machine.column"]  # type: ignore[assignment]
        new = np.flatnonzero(slots[series] < 0)
        if len(new):
            own = state.entities.columns
            taken, width = own["machine.metrics"], own["machine.width"]
            names = state.entities.keys()
            for index in new.tolist():  # not a loop over all records: each series is new only once
                entity = owner[index]
                slots[series[index]] = taken[entity]
                taken[entity] += 1
            for entity in np.unique(owner[new]).tolist():
                needed = min((w for w in WIDTHS if w >= taken[entity]), default=WIDTHS[-1])
                if needed > width[entity]:
                    width[entity] = needed
                    own["machine.row"][entity] = state.machines[needed].rows([names[entity]])[0]
        return slots[series]
