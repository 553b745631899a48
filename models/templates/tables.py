"""What the model of log templates keeps: four tables of columns, and the window that it is handed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from models.families.gamma_poisson import GammaPoisson
from models.numbers.arrays import Array, Columns, Flags, Ints, Rows, prefixed
from models.numbers.calibration import TailCalibration
from models.templates import newcomers

COUNTED = ("events", "exposure", "windows", "excess")


@dataclass
class TemplateTables:
    """The tables; a row that is new in a window is appended by the caller before the window is judged.

    Args:
        fleets: A row for each population of entities that share their templates.
        entities: A row an entity.
        templates: A row a template.
        pairs: A row a pair of entity and template that has ever come: a sparse matrix.
    """

    fleets: Columns
    entities: Columns
    templates: Columns
    pairs: Columns


@dataclass(frozen=True)
class LogWindow:
    """One window of some entities, with *all* pairs of those entities, count 0 for those that did not come.

    Args:
        rows: Distinct rows of the entities, shape (m,).
        fleet: Row of each entity's fleet, shape (m,).
        pairs: Rows of the pairs, in the same order each time, shape (r,).
        owner: Place in ``rows`` of the entity of each pair, shape (r,).
        template: Row of the template of each pair, shape (r,).
        count: Lines in this window, at least 0, shape (r,).
        errors: Lines of grave severities of each entity, whatever their templates; ``None``: none; shape (m,).
    """

    rows: Ints
    fleet: Ints
    pairs: Ints
    owner: Ints
    template: Ints
    count: Array
    errors: Array | None = None

    def part(self, keep: Flags) -> LogWindow:
        """The window of some of its entities.

        Args:
            keep: Which, shape (m,).
        """
        pairs = keep[self.owner]
        owner: Ints = (np.cumsum(keep) - 1)[self.owner[pairs]]
        return LogWindow(
            self.rows[keep],
            self.fleet[keep],
            self.pairs[pairs],
            owner,
            self.template[pairs],
            self.count[pairs],
            None if self.errors is None else self.errors[keep],
        )

    def total(self, weight: Array | Flags) -> Array:
        """Sum over each entity's pairs, shape (m,)."""
        return np.bincount(self.owner, weight, len(self.rows)).astype(np.float64)

    def strongest(self, evidence: Array) -> Array:
        """Largest over each entity's pairs, at least 0, shape (m,)."""
        best = np.zeros(len(self.rows))
        np.maximum.at(best, self.owner, evidence)
        return best


def counted(n: int) -> Columns:
    """The columns of a `GammaPoisson`."""
    return {name: np.zeros(n) for name in COUNTED}


def read(state: Rows, prefix: str = "") -> GammaPoisson:
    """A `GammaPoisson` from its columns."""
    return GammaPoisson(*(state[prefix + name] for name in COUNTED))


def write(state: Rows, rates: GammaPoisson, prefix: str = "") -> None:
    """Inverse of `read`."""
    for name in COUNTED:
        state[prefix + name] = getattr(rates, name)


def new_fleets(n: int) -> Columns:
    """The columns for n fleets of which nothing is known."""
    return {"windows": np.zeros(n)} | prefixed("strangers.", counted(n)) | newcomers.new_fleets(n)


def new_entities(n: int, calibration: TailCalibration) -> Columns:
    """The columns for n entities of which nothing is known."""
    columns: Columns = {name: np.zeros(n) for name in ("windows", "odd", "unrest", "quiet")}
    columns |= prefixed("strangers.", counted(n)) | prefixed("lines.", counted(n))
    return columns | prefixed("mix.", calibration.new_state(n))


def new_templates(n: int) -> Columns:
    """The columns for n templates that come for the first time."""
    return {"born": np.full(n, -1.0)}


def new_pairs(n: int) -> Columns:
    """The columns for n pairs of entity and template that come for the first time."""
    return counted(n) | {"born": np.full(n, -1.0), "recent": np.zeros(n)} | newcomers.new_pairs(n)
