"""The state of the models of metrics: a row for each series (machine and metric), and a row for each machine."""

from __future__ import annotations

from collections.abc import Callable, Collection
from copy import copy

import polars as pl
import pyarrow as pa

from models.arrays import Columns
from pipelines.jobs.detect.beliefs import Said, latest
from pipelines.jobs.detect.state_table import StateTable

_ALWAYS = ("series", "entities")


def link(state: DetectionState, entities: Collection[str]) -> None:
    """Sets the references between the rows of some machines and the rows of their series.

    Each series refers to the row of its machine; each machine to the row of its only series (-1: none; -2: several).
    """
    owners, only = state.series.columns["heard.owner"], state.entities.columns["heard.only"]
    machines, series = state.entities.rows_of(entities), state.series.rows_of(entities)
    row_of = {name: row for (name,), row in zip(state.entities.names_of(machines), machines.tolist(), strict=True)}
    own: dict[int, list[int]] = {row: [] for row in row_of.values()}
    for (name, _), row in zip(state.series.names_of(series), series.tolist(), strict=True):
        if name in row_of and owners[row] != -1:
            owners[row] = row_of[name]
            own[row_of[name]].append(row)
    for entity, rows in own.items():
        only[entity] = rows[0] if len(rows) == 1 else -2 if rows else -1
    state.entities.touch(machines)
    state.series.touch(series)


class DetectionState:
    """The state of the models of all known series and machines.

    Args:
        new_series: Makes the state columns for n new series.
        new_entities: Makes the state columns for n new machines.
        machines: Empty tables for the models of whole machines, by width.
        worst: An empty frame with the columns of verdicts.

    Attributes:
        said: What was believed of series when that changed, since this state was read; it is not stored.
        absent: What was believed of absent series and machines, likewise.
        worst: For each open incident, announced or not, the verdict on its worst window so far, with its ``onset``.
        stored_worst: What ``worst`` was when the state was read or `stored`.
    """

    def __init__(
        self,
        new_series: Callable[[int], Columns],
        new_entities: Callable[[int], Columns],
        machines: dict[int, StateTable],
        worst: pl.DataFrame,
    ) -> None:
        self.series = StateTable(("entity", "metric"), new_series)
        self.entities = StateTable(("entity",), new_entities)
        self.machines, self.worst, self.stored_worst = machines, worst, worst
        self.said: list[Said] = []
        self.absent: list[pl.DataFrame] = []

    def to_tables(self) -> dict[str, pa.Table]:
        """The whole state as tables: ``series``, ``entities``, and if not empty ``machines-<width>`` and ``worst``."""
        tables = {name: table.to_arrow() for name, table in self.tables.items() if len(table) or name in _ALWAYS}
        return tables | ({"worst": self.worst.to_arrow()} if self.worst.height else {})

    @property
    def tables(self) -> dict[str, StateTable]:
        """The tables by the names that `to_tables` gives them."""
        machines = {f"machines-{width}": table for width, table in self.machines.items()}
        return {"series": self.series, "entities": self.entities} | machines

    def put_worst(self, worst: pl.DataFrame) -> None:
        """Sets the worst verdicts as they were stored; columns that they lack become null."""
        self.worst = pl.concat([self.worst.clear(), worst], how="diagonal_relaxed").select(self.worst.columns)

    def stored(self) -> None:
        """Says that all is stored as it is now."""
        self.stored_worst = self.worst
        for table in self.tables.values():
            table.stored()

    def beliefs(self) -> pl.DataFrame:
        """What was said since this state was read: the last belief of each series, as records of `SeriesState`."""
        return latest(self.said, self.absent)

    def only(self, entities: Collection[str]) -> DetectionState:
        """A copy of the state of some machines and their series."""
        part = copy(self)
        part.said, part.absent = [], []
        part.series, part.entities = self.series.only(entities), self.entities.only(entities)
        part.machines = {width: table.only(entities) for width, table in self.machines.items()}
        part.worst = self.worst.filter(pl.col("entity").is_in(list(entities)))
        part._link(entities)
        return part

    def replace(self, part: DetectionState, entities: Collection[str]) -> None:
        """Replaces the rows of some machines and their series by the rows of another state."""
        self.series.replace(part.series)
        self.entities.replace(part.entities)
        for width, table in self.machines.items():
            table.replace(part.machines[width])
        others = self.worst.filter(~pl.col("entity").is_in(list(entities)))
        self.worst = pl.concat([others, part.worst])
        self.said += part.said
        self.absent += part.absent
        self._link(entities)

    def _link(self, entities: Collection[str]) -> None:
        """Sets the references between rows of this state, whose numbers differ from those of the other state."""
        own, rows = self.entities.columns, self.entities.rows_of(entities)
        for width, table in self.machines.items():
            place = table.index.find(self.entities.index.keys[rows])
            here = (place >= 0) & (own["machine.width"][rows] == width)
            own["machine.row"][rows[here]] = place[here]
        link(self, entities)
