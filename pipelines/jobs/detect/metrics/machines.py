"""Which column of its machine's model a metric is, and the models' state, by width; machines of like width go together.

A metric keeps its column for good. A machine that gets more metrics than its model has columns goes to a wider model,
which starts anew; beyond the widest, further metrics are judged on their own only.
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
    """Columns of an entity: the width of its model, its row there, and how many of the model's columns are taken."""
    return {name: np.zeros(n, np.int64) for name in ("machine.width", "machine.row", "machine.metrics")}


def new_slots(n: int) -> Columns:
    """Column of a series: its place in the model of its machine; -1: none yet."""
    return {"machine.column": np.full(n, -1, np.int64)}


class Machines:
    """The models, one a width; holds no state.

    Args:
        config: Their constants.
    """

    def __init__(self, config: MultivariateConfig) -> None:
        self.models = {width: Multivariate(config, width) for width in WIDTHS}

    def new_tables(self) -> dict[int, StateTable]:
        """Empty tables of state, by width."""
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
        """Judges one window each of some entities with two or more metrics, and learns from it.

        Args:
            state: Its rows of these entities and series are changed.
            owner: The entity's row of each value; those of one entity stand together, shape (n,).
            series: The series' row of each value, shape (n,).
            time: End of the window, shape (n,).
            value: NaN: missing, shape (n,).
            seen: What is judged in place of the value, NaN where a rule says so; ``None``: the value, shape (n,).
            learned: The same of what is learned.
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
            if seen is None and learned is None:
                verdicts = model.step(columns, rows[here], when, matrices[0])
            else:
                verdicts = model.score(columns, rows[here], when, matrices[0])
                model.learn(columns, rows[here], when, matrices[1])
            evidence[here] = -np.log(verdicts.probability)
            cells = at[place[in_it]], column[in_it]
            shares[in_it], expected[in_it] = verdicts.shares[cells], verdicts.expected[cells]
        return Together(evidence, widths > 0, shares, expected)

    def shift(self, state: DetectionState, owner: Ints, series: Ints, offset: Array) -> None:
        """Moves what is typical of some metrics, in the models that have them, by an offset each.

        Args:
            state: Its rows of these entities are changed.
            owner: The entity's row of each metric, shape (n,).
            series: The series' row, shape (n,).
            offset: By how much its level has changed, shape (n,).
        """
        own, column = state.entities.columns, state.series.columns["machine.column"][series].astype(np.int64)
        widths = own["machine.width"][owner].astype(np.int64)
        rows = own["machine.row"][owner].astype(np.int64)
        for width in np.unique(widths[widths > 0]).tolist():
            here = (widths == width) & (column >= 0) & (column < width)
            self.models[width].shift(state.machines[width].columns, rows[here], column[here], offset[here])

    def _columns(self, state: DetectionState, owner: Ints, series: Ints) -> Ints:
        """The model's column of each value; new metrics get a column, and machines that need it get a (wider) model."""
        slots: Ints = state.series.columns["machine.column"]  # type: ignore[assignment]
        new = np.flatnonzero(slots[series] < 0)
        if len(new):
            own = state.entities.columns
            taken, width = own["machine.metrics"], own["machine.width"]
            names = state.entities.keys()
            for index in new.tolist():  # a series is new once
                entity = owner[index]
                slots[series[index]] = taken[entity]
                taken[entity] += 1
            for entity in np.unique(owner[new]).tolist():
                needed = min((w for w in WIDTHS if w >= taken[entity]), default=WIDTHS[-1])
                if needed > width[entity]:
                    width[entity] = needed
                    own["machine.row"][entity] = state.machines[needed].rows([names[entity]])[0]
        return slots[series]
