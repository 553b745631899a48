"""Compiles the detector's kernels when it is imported, or loads them where they were compiled before.

``python -m models.compiled``, of which `make setup` makes use, compiles them once and deletes those of older sources.
Spark's Python daemon imports this module before it forks its workers: then the first window waits for nothing.
"""

from __future__ import annotations

import numpy as np

from models import kernels
from models.config import DetectorConfig
from models.detector import Detector
from models.filling.filling import Filling
from models.fleet.config import FleetConfig
from models.fleet.outliers import Outliers
from models.fleet.windows import Members
from models.machine.blocks import join_blocks
from models.machine.config import MultivariateConfig
from models.machine.joined import Joined, Windows
from models.machine.multivariate import Multivariate
from models.regimes.absence import Absence
from models.regimes.silence import Silence


def load() -> None:
    """Judges a value of a series, and its machine, looks whether they are absent, and whether it is like its peers."""
    detector, row, value = Detector(DetectorConfig()), np.zeros(1, np.int64), np.ones(1)
    detector.step(detector.new_state(1), row, row, value)
    machine, joined = Multivariate(MultivariateConfig(), 1), Joined(DetectorConfig())
    machine.step(machine.new_state(1), row, row, value.reshape(1, 1))
    join_blocks(np.arange(2), value, value)
    joined.join(joined.new_state(1), Windows(row, row, np.arange(2)), value, row == 0)
    absence = Absence(Silence(majority=10.0, forget=1 / 5000, bar=10.0))
    series, machines = absence.new_series(1), absence.new_machines(1)
    absence.hear(series, machines, row, row, row, row, row)
    absence.overdue(series, machines, (1, 1), 0)
    absence.first_due(machines, 1)
    filling = Filling()
    filling.step(filling.new_state(1), row, row, value, value, row)
    fleet = Outliers(FleetConfig(), DetectorConfig())
    fleet.step(fleet.new_state(1), Members(row, row, row, row, value, value, row == 0))


load()
kernels.mark_ready()

if __name__ == "__main__":
    kernels.tidy()
