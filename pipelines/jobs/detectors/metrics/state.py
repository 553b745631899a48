"""The state of the models of metrics: a row for each series (machine and metric), and a row for each machine."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from copy import copy

import numpy as np
import polars as pl
import pyarrow as pa

from models.numbers.arrays import Columns
from pipelines.jobs.detectors.beliefs import SeriesBeliefs, latest
from pipelines.jobs.detectors.metrics.blocks import from_earlier, in_use, most_in_use
from pipelines.jobs.detectors.state_table import StateTable, as_frame


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
        machines: Empty tables for the models of machines' blocks of metrics, by width.
        worst: An empty frame with the columns of verdicts.

    Attributes:
        changed: What was believed of series when that changed, since this state was read; it is not stored.
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
        self.changed: list[SeriesBeliefs] = []
        self.absent: list[pl.DataFrame] = []

    def to_tables(self) -> dict[str, pa.Table]:
        """The whole state as tables: ``series``, ``entities``, and if not empty ``machines-<width>`` and ``worst``.

        Models that wider ones have replaced are left out.
        """
        tables = {"series": self.series.to_arrow(), "entities": self.entities.to_arrow()}
        for width, table in self.machines.items():
            used = in_use(table, width, self.entities)
            if used.any():
                tables[f"machines-{width}"] = table.to_arrow(np.flatnonzero(used))
        return tables | ({"worst": self.worst.to_arrow()} if self.worst.height else {})

    def fill(self, tables: Mapping[str, pa.Table]) -> None:
        """Fills a new state from tables as from `to_tables`, also from those of earlier versions.

        Raises:
            NewnormalError: ``STATE_INVALID`` if a table does not fit the models.
        """
        for name, table in self.tables.items():
            if name in tables:
                table.fill(from_earlier(tables[name]) if name in self._of_machines else tables[name])
        if "worst" in tables:
            self.put_worst(as_frame(tables["worst"]))

    @property
    def tables(self) -> dict[str, StateTable]:
        """The tables by the names that `to_tables` gives them."""
        return {"series": self.series, "entities": self.entities} | self._of_machines

    @property
    def _of_machines(self) -> dict[str, StateTable]:
        return {f"machines-{width}": table for width, table in self.machines.items()}

    def put_worst(self, worst: pl.DataFrame) -> None:
        """Sets the worst verdicts as they were stored; columns that they lack become null."""
        self.worst = pl.concat([self.worst.clear(), worst], how="diagonal_relaxed").select(self.worst.columns)

    def drop_replaced(self, share: float = 0.0) -> list[str]:
        """Drops the models that wider ones have replaced.

        Args:
            share: Tables are left as they are of which at most this share of the rows would be dropped.

        Returns:
            The names of the tables that have changed, whose rows lie elsewhere then.
        """
        changed = []
        metrics = self.entities.columns["machine.metrics"][: len(self.entities)].astype(np.int64)
        for width, table in self.machines.items():
            if len(table) - most_in_use(width, metrics) > share * len(table):
                self.machines[width] = table.where(in_use(table, width, self.entities))
                changed.append(f"machines-{width}")
        return changed

    def stored(self) -> None:
        """Says that all is stored as it is now."""
        self.stored_worst = self.worst
        for table in self.tables.values():
            table.stored()

    def beliefs(self) -> pl.DataFrame:
        """What was said since this state was read: the last belief of each series, as records of `SeriesState`."""
        return latest(self.changed, self.absent)

    def only(self, entities: Collection[str]) -> DetectionState:
        """A copy of the state of some machines and their series, without models that wider ones have replaced."""
        part = copy(self)
        part.changed, part.absent = [], []
        part.series, part.entities = self.series.only(entities), self.entities.only(entities)
        part.machines = {width: table.only(entities) for width, table in self.machines.items()}
        part.drop_replaced()
        part.worst = self.worst.filter(pl.col("entity").is_in(list(entities)))
        link(part, entities)
        return part

    def replace(self, part: DetectionState, entities: Collection[str]) -> None:
        """Replaces the rows of some machines and their series by the rows of another state."""
        self.series.replace(part.series)
        self.entities.replace(part.entities)
        for width, table in self.machines.items():
            table.replace(part.machines[width])
        others = self.worst.filter(~pl.col("entity").is_in(list(entities)))
        self.worst = pl.concat([others, part.worst])
        self.changed += part.changed
        self.absent += part.absent
        link(self, entities)
