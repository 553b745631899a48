"""The level of series in each of the regimes that they are known in."""

from __future__ import annotations

import numpy as np

from models.arrays import Array, Columns, Ints, Rows


def levels(state: Columns, rows: Ints) -> Array:
    """The level of each known regime: of the present one, the mean of the latest values outside of incidents.

    Regimes differ by a shift on the axis of `models.regimes.axis`, so the level of one gives those of the others.

    Args:
        state: The columns of `models.detector.Detector`.
        rows: Rows of the state, shape (n,).

    Returns:
        The levels; NaN for empty slots; shape (n, SLOTS).
    """
    own, unit = Rows(state, rows, "regime."), Rows(state, rows, "log_level.")["unit"]
    place = own["shift"].astype(np.float64) + own["level"].astype(np.float64)[:, None]
    level = np.sinh(place) * np.where(unit > 0, unit, 1.0)[:, None]
    return np.where(own["used"] >= 0, level, np.nan)
