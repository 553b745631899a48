"""The state of the models of metrics: a row for each series (machine and metric), and a row for each machine."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from copy import copy

import numpy as np
import polars as pl
import pyarrow as pa

from models.numbers.arrays import Columns, Flags, Ints
from models.regimes.absence import NONE, SEVERAL
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
        if name in row_of and owners[row] != NONE:
            owners[row] = row_of[name]
            own[row_of[name]].append(row)
    for entity, rows in own.items():
        only[entity] = rows[0] if len(rows) == 1 else SEVERAL if rows else NONE
    state.entities.touch(machines)
    state.series.touch(series)


class DetectionState:
    """The state of the models of all known series and machines.

    Args:
        new_series: Makes the state columns for n new series.
        new_entities: Makes the state columns for n new machines.
        machines: Empty tables for the models of machines' blocks of metrics, by width.
        worst: An empty frame with the columns of verdicts.
        new_filling: Makes the state columns for n series with a bound.

    Attributes:
        changed: What was believed of series when that changed, since this state was read; it is not stored.
        absent: What was believed of absent series and machines, likewise.
        forgotten: What was forgotten since this state was read: machine, metric, and the instant as ``window_end``.
        moved: The names of the tables whose rows lie elsewhere since then, as some were removed.
        worst: For each open incident, announced or not, the verdict on its worst window so far, with its ``onset``.
        stored_worst: What ``worst`` was when the state was read or `stored`.
    """

    def __init__(
        self,
        new_series: Callable[[int], Columns],
        new_entities: Callable[[int], Columns],
        machines: dict[int, StateTable],
        worst: pl.DataFrame,
        new_filling: Callable[[int], Columns],
    ) -> None:
        self.series = StateTable(("entity", "metric"), new_series)
        self.entities = StateTable(("entity",), new_entities)
        self.filling = StateTable(("entity", "metric"), new_filling)
        self.machines, self.worst, self.stored_worst = machines, worst, worst
        self.changed: list[SeriesBeliefs] = []
        self.absent: list[pl.DataFrame] = []
        self.forgotten: list[pl.DataFrame] = []
        self.moved: set[str] = set()

    def to_tables(self) -> dict[str, pa.Table]:
        """The state as tables: ``series``, ``entities``, if not empty ``filling``, ``machines-<width>``, ``worst``.

        Models that wider ones have replaced are left out.
        """
        tables = {"series": self.series.to_arrow(), "entities": self.entities.to_arrow()}
        for width, table in self.machines.items():
            used = in_use(table, width, self.entities)
            if used.any():
                tables[f"machines-{width}"] = table.to_arrow(np.flatnonzero(used))
        if len(self.filling):
            tables["filling"] = self.filling.to_arrow()
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
        return {"series": self.series, "entities": self.entities, "filling": self.filling} | self._of_machines

    @property
    def _of_machines(self) -> dict[str, StateTable]:
        return {f"machines-{width}": table for width, table in self.machines.items()}

    def put_worst(self, worst: pl.DataFrame) -> None:
        """Sets the worst verdicts as they were stored; columns that they lack become null."""
        self.worst = pl.concat([self.worst.clear(), worst], how="diagonal_relaxed").select(self.worst.columns)

    def keep(self, series: Flags, entities: pl.Series) -> None:
        """Removes all series but some, and all machines but some; frees their rows.

        A machine of whose columns more than half belonged to removed series begins its models of blocks anew.

        Args:
            series: For each series whether it is kept.
            entities: Names of the machines that are kept.
        """
        self.series = self.series.where(series)
        self.entities = self.entities.where(self.entities.index.keys["entity"].is_in(entities.implode()).to_numpy())
        self.filling = self.filling.where(self.series.has(self.filling.index.keys))
        owners: Ints = self.series.columns["heard.owner"]  # type: ignore[assignment]
        places: Ints = self.series.columns["machine.column"]  # type: ignore[assignment]
        only: Ints = self.entities.columns["heard.only"]  # type: ignore[assignment]
        metrics: Ints = self.entities.columns["machine.metrics"]  # type: ignore[assignment]
        n, m = len(self.series), len(self.entities)
        machine = self.entities.index.find(self.series.index.keys.select("entity"))
        heard = np.flatnonzero(owners[:n] != NONE)
        owners[heard] = machine[heard]
        several = np.bincount(machine[heard], minlength=m) > 1
        only[:m] = NONE
        only[machine[heard]] = heard
        only[:m][several] = SEVERAL
        placed = np.bincount(machine[places[:n] >= 0], minlength=m)
        anew = 2 * placed < metrics[:m]
        places[:n][anew[machine]] = -1
        metrics[:m][anew] = 0
        with_models = self.entities.index.keys["entity"].filter(pl.Series(~anew)).implode()
        self.machines = {
            width: table.where(table.index.keys["entity"].is_in(with_models).to_numpy())
            for width, table in self.machines.items()
        }
        self.worst = self.worst.join(self.series.index.keys, on=["entity", "metric"], how="semi", maintain_order="left")
        self.moved |= set(self.tables)

    def usual(self, machines: list[str]) -> Ints:
        """The usual time between two windows of some machines, milliseconds; 0 of one that is not known."""
        rows = self.entities.index.find(pl.DataFrame({"entity": machines}, {"entity": pl.String}))
        usual = self.entities.columns["heard.usual"][rows].astype(np.int64)
        return np.where(rows >= 0, usual, 0)

    def drop_replaced(self, share: float = 0.0) -> list[str]:
        """Drops the models that wider ones have replaced.

        Args:
            share: Tables are left as they are of which at most this share of the rows would be dropped.

        Returns:
            The names of the tables that have changed, whose rows lie elsewhere then.
        """
        changed = sorted(self.moved)
        metrics = self.entities.columns["machine.metrics"][: len(self.entities)].astype(np.int64)
        for width, table in self.machines.items():
            if len(table) - most_in_use(width, metrics) > share * len(table):
                self.machines[width] = table.where(in_use(table, width, self.entities))
                changed.append(f"machines-{width}")
        return changed

    def stored(self) -> None:
        """Says that all is stored as it is now."""
        self.stored_worst = self.worst
        self.moved = set()
        for table in self.tables.values():
            table.stored()

    def beliefs(self) -> pl.DataFrame:
        """What was said since this state was read: the last belief of each series, as records of `SeriesState`.

        Of a forgotten series all columns but the key are null, which deletes what was said of it.
        """
        return latest(self.changed, [*self.absent, *self.forgotten])

    def only(self, entities: Collection[str]) -> DetectionState:
        """A copy of the state of some machines and their series, without models that wider ones have replaced."""
        part = copy(self)
        part.changed, part.absent, part.forgotten, part.moved = [], [], [], set()
        part.series, part.entities = self.series.only(entities), self.entities.only(entities)
        part.filling = self.filling.only(entities)
        part.machines = {width: table.only(entities) for width, table in self.machines.items()}
        part.drop_replaced()
        part.worst = self.worst.filter(pl.col("entity").is_in(list(entities)))
        link(part, entities)
        return part

    def replace(self, part: DetectionState, entities: Collection[str]) -> None:
        """Replaces the rows of some machines and their series by the rows of another state."""
        self.series.replace(part.series)
        self.entities.replace(part.entities)
        self.filling.replace(part.filling)
        for width, table in self.machines.items():
            table.replace(part.machines[width])
        others = self.worst.filter(~pl.col("entity").is_in(list(entities)))
        self.worst = pl.concat([others, part.worst])
        self.changed += part.changed
        self.absent += part.absent
        self.forgotten += part.forgotten
        link(self, entities)
