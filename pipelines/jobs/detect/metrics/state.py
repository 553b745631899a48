"""What the detection of metrics knows: a row for each series (entity and metric), and a row for each entity."""

from __future__ import annotations

from collections.abc import Callable, Collection
from copy import copy

import polars as pl
import pyarrow as pa

from models.arrays import Columns
from pipelines.jobs.detect.state_table import StateTable


def link(state: DetectionState, entities: Collection[str]) -> None:
    """Refers each series to its entity's row, and each entity to its only series' row (-1: none; -2: several)."""
    owners, only = state.series.columns["heard.owner"], state.entities.columns["heard.only"]
    row_of = {name: row for row, (name,) in enumerate(state.entities.keys()) if name in entities}
    own: dict[int, list[int]] = {row: [] for row in row_of.values()}
    for row, (name, _) in enumerate(state.series.keys()):
        if name in row_of and owners[row] != -1:
            owners[row] = row_of[name]
            own[row_of[name]].append(row)
    for entity, rows in own.items():
        only[entity] = rows[0] if len(rows) == 1 else -2 if rows else -1


class DetectionState:
    """What the detection knows of all series and entities it has met.

    Args:
        new_series: The detector's columns for n new series.
        new_entities: The joined detector's columns for n new entities.
        machines: Empty tables for the models of several metrics, by width.
        worst: No verdicts.

    Attributes:
        worst: For each open incident, announced or not: the verdict on its worst window so far, and its ``onset``.
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
        self.machines, self.worst = machines, worst

    def to_tables(self) -> dict[str, pa.Table]:
        """All state: ``series``, ``entities``, and where they are in use ``machines-<width>`` and ``worst``."""
        tables = {"series": self.series.to_arrow(), "entities": self.entities.to_arrow()}
        used = {f"machines-{width}": table.to_arrow() for width, table in self.machines.items() if len(table)}
        return tables | used | ({"worst": self.worst.to_arrow()} if self.worst.height else {})

    def only(self, entities: Collection[str]) -> DetectionState:
        """A copy of what is known of some entities and their series."""
        part = copy(self)
        part.series, part.entities = self.series.only(entities), self.entities.only(entities)
        part.machines = {width: table.only(entities) for width, table in self.machines.items()}
        part.worst = self.worst.filter(pl.col("entity").is_in(list(entities)))
        part._link(entities)
        return part

    def replace(self, part: DetectionState, entities: Collection[str]) -> None:
        """Replaces the rows of some entities by another state's rows."""
        self.series.replace(part.series)
        self.entities.replace(part.entities)
        for width, table in self.machines.items():
            table.replace(part.machines[width])
        others = self.worst.filter(~pl.col("entity").is_in(list(entities)))
        self.worst = pl.concat([others, part.worst])
        self._link(entities)

    def _link(self, entities: Collection[str]) -> None:
        """Sets the references from rows of entities to rows of models, whose numbers are those of this state."""
        own = self.entities.columns
        for width, table in self.machines.items():
            for entity in entities:
                row, place = self.entities.find([(entity,)]), table.find([(entity,)])
                if len(row) and len(place) and own["machine.width"][row[0]] == width:
                    own["machine.row"][row[0]] = place[0]
        link(self, entities)
